import type { Migration } from './migration.js'

/**
 * Live events about cases, for moderators and admins; their announcements name no user, as those of posts in streams. And the operators
 * of other pods, to whom cases are forwarded.
 */
export const caseAnnouncements: Migration = {
  async up(db) {
    await db.raw(`
      alter table pods add column admin_account text collate "C";
      alter table announcements
        drop constraint announcements_kind_check,
        drop constraint announcements_check,
        add constraint announcements_kind_check
          check (kind in ('notification', 'message', 'post', 'moderation_case')) not valid,
        add constraint announcements_check check (kind in ('post', 'moderation_case') or user_id is not null) not valid;
    `)
  },

  async down(db) {
    await db.raw(`
      alter table pods drop column admin_account;
      delete from announcements where kind = 'moderation_case';
      alter table announcements
        drop constraint announcements_kind_check,
        drop constraint announcements_check,
        add constraint announcements_kind_check check (kind in ('notification', 'message', 'post')),
        add constraint announcements_check check (kind = 'post' or user_id is not null);
    `)
  },
}
