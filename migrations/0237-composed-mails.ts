import type { Migration } from './migration.js'

/** When the text of an unsent mail was composed: a report that comes later is not in it. */
export const composedMails: Migration = {
  async up(db) {
    await db.raw('alter table mails add column composed_at timestamptz(3)')
  },

  async down(db) {
    await db.raw('alter table mails drop column composed_at')
  },
}
