import type { Migration } from './migration.js'

/** A soft-deleted post has no author; it is purged with its comments and likes in transactions of bounded size. */
export const deletedPosts: Migration = {
  async up(db) {
    await db.raw(`
      alter table posts
        alter author_id drop not null,
        add constraint posts_author check (author_id is not null or not public) not valid;
      create index posts_deleted on posts (id) where author_id is null;
    `)
  },
  async down(db) {
    await db.raw(`
      delete from posts where author_id is null;
      drop index posts_deleted;
      alter table posts drop constraint posts_author, alter author_id set not null;
    `)
  },
}
