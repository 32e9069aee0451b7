import type { Migration } from './migration.js'

export const uploadSpace: Migration = {
  async up(db) {
    await db.raw(`
      -- Disk space of uploaded archives while they arrive, by the uid of the upload.
      create table upload_space (
        uid text collate "C" primary key,
        -- Bytes that the files may take, at least those that have arrived.
        reserved_bytes bigint not null,
        -- Until this time one request writes to a file of the upload.
        writing_until timestamptz(3)
      )
    `)
  },

  async down(db) {
    await db.raw('drop table upload_space')
  },
}
