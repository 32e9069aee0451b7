import type { Migration } from './migration.js'

/** Bytes that the people of other pods have sent in a day, by the host of their addresses. */
export const podBytes: Migration = {
  async up(db) {
    await db.raw(`
      create table pod_bytes (
        host text collate "C" not null,
        day date not null,
        bytes bigint not null check (bytes >= 0),
        primary key (host, day)
      )
    `)
  },
  async down(db) {
    await db.raw('drop table pod_bytes')
  },
}
