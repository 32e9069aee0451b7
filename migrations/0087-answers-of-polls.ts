import type { Migration } from './migration.js'

/** A vote names poll and answer, so the guid of an answer is unique within its poll only. */
export const answersOfPolls: Migration = {
  async up(db) {
    await db.raw(`
      alter table poll_answers drop constraint poll_answers_guid_key;
      alter table poll_answers add constraint poll_answers_guid_once unique (poll_id, guid);
    `)
  },
  async down(db) {
    await db.raw(`
      delete from poll_answers using poll_answers as earlier
      where earlier.guid = poll_answers.guid and earlier.id < poll_answers.id;
      alter table poll_answers drop constraint poll_answers_guid_once;
      alter table poll_answers add constraint poll_answers_guid_key unique (guid);
    `)
  },
}
