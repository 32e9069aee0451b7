import type { Migration } from './migration.js'

/** Tags that occur in no public post are hidden from other users. */
export const publicTags: Migration = {
  async up(db) {
    await db.raw(`
      alter table tags add column public boolean not null default false;
      update tags set public = true where exists (
        select from taggings
        left join comments on comments.id = taggings.comment_id
        join posts on posts.id = coalesce(taggings.post_id, comments.post_id) and posts.public
        where taggings.tag_id = tags.id
      );
      create index tags_public on tags (name) where public;
    `)
  },
  async down(db) {
    await db.raw(`
      drop index tags_public;
      alter table tags drop column public;
    `)
  },
}
