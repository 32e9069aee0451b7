import type { Migration } from './migration.js'

/** `unanswered` counts attempts in a row without an answer, so that a pod that never answers is tried less and less often. */
export const unansweredAnnouncements: Migration = {
  async up(db) {
    await db.raw(`alter table migration_announcements add column unanswered smallint not null default 0`)
  },

  async down(db) {
    await db.raw(`alter table migration_announcements drop column unanswered`)
  },
}
