import type { Migration } from './migration.js'

export const meetingOthers: Migration = {
  async up(db) {
    await db.raw(`
      -- The software that the NodeInfo of the pod names; null: not requested yet, or not named.
      alter table pods add column software text, add column software_version text;

      -- A key belongs to one person. A hash index, because a key is longer than an entry of a B-tree may be.
      create index people_public_key on people using hash (public_key);
    `)
  },

  async down(db) {
    await db.raw(`
      drop index people_public_key;
      alter table pods drop column software, drop column software_version;
    `)
  },
}
