import type { Migration } from './migration.js'

export const powerOfActions: Migration = {
  async up(db) {
    await db.raw(`
      -- The power that the action needed; its undo needs the same.
      alter table moderation_actions
        add column power text not null default 'moderation' check (power in ('moderation', 'administration'));

      -- Earlier large cleanings of admins. Moderators could not undo any of theirs.
      update moderation_actions set power = 'administration'
      where kind in ('cluster.clean', 'filter.apply') and actor ->> 'role' = 'admin';
    `)
  },

  async down(db) {
    await db.raw('alter table moderation_actions drop column power')
  },
}
