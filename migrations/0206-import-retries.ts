import type { Migration } from './migration.js'

export const importRetries: Migration = {
  async up(db) {
    await db.raw(`
      -- When items of an import that is done are tried again, because another pod did not answer, and how often they were.
      alter table imports
        add column retry_at timestamptz(3),
        add column retries smallint not null default 0
    `)
    await db.raw('create index imports_retry_at on imports (retry_at) where retry_at is not null')
  },

  async down(db) {
    await db.raw('alter table imports drop column retry_at, drop column retries')
  },
}
