import type { Migration } from './migration.js'

/** Rows of imported lists may be for one port. */
export const portsOfImports: Migration = {
  async up(db) {
    await db.raw(`
      alter table pod_rule_import_rows add column port integer check (port between 1 and 65535);
    `)
  },

  async down(db) {
    await db.raw(`
      alter table pod_rule_import_rows drop column port;
    `)
  },
}
