import type { Migration } from './migration.js'

/** A pod that an operator has put to sleep keeps the time since which it was unreachable. */
export const podsPutToSleep: Migration = {
  async up(db) {
    await db.raw('alter table pods add column asleep_at timestamptz(3)')
  },
  async down(db) {
    await db.raw('alter table pods drop column asleep_at')
  },
}
