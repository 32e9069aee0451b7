import { type Migration, now } from './migration.js'

/**
 * Photos are deleted in many ways: alone, with their post, with their author, by age. A trigger writes an outbox row that deletes the
 * files in the transaction that deletes the row, so that no file is left.
 */
export const photoFiles: Migration = {
  async up(db) {
    await db.raw(`
      create function remove_photo_files() returns trigger language plpgsql as $$
      begin
        insert into outbox (queue, name, data, sweep_at)
        values ('photos', 'remove-photo-files', jsonb_build_object('names', jsonb_build_array(old.name)), ${now});
        return null;
      end
      $$;
      create trigger remove_photo_files after delete on photos
        for each row when (old.remote_path is null) execute function remove_photo_files();

      -- Why an upload was refused, for the client that waits for its photo.
      create table refused_uploads (
        guid text collate "C" primary key,
        reason text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index refused_uploads_created_at on refused_uploads (created_at)`)
  },

  async down(db) {
    await db.raw(`
      drop table refused_uploads;
      drop trigger remove_photo_files on photos;
      drop function remove_photo_files()`)
  },
}
