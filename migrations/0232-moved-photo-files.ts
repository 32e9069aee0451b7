import { type Migration, now } from './migration.js'

export const movedPhotoFiles: Migration = {
  async up(db) {
    await db.raw(`
      -- Photos of accounts that have moved away: their files stay for a while, then their addresses lead to the new place.
      create table moved_photo_files (
        photo_id bigint not null references photos on delete cascade,
        -- The file on this pod; the photo may have another name at its new place.
        name text collate "C" not null,
        moved_at timestamptz(3) not null,
        -- Null: the file exists.
        deleted_at timestamptz(3),
        primary key (photo_id, name)
      );
      create index moved_photo_files_name on moved_photo_files (name);
      create index moved_photo_files_due on moved_photo_files (moved_at) where deleted_at is null;

      -- Runs after the move of the account, or later after a message about the photo.
      create function note_moved_photo_file() returns trigger language plpgsql as $$
      begin
        insert into moved_photo_files (photo_id, name, moved_at) values (old.id, old.name, ${now})
        on conflict (photo_id, name) do update set moved_at = excluded.moved_at, deleted_at = null;
        return null;
      end
      $$;
      create trigger note_moved_photo_file after update of remote_path on photos
        for each row when (old.remote_path is null and new.remote_path is not null)
        execute function note_moved_photo_file();

      -- If the photo is deleted earlier, its file is deleted too, like the file of a local photo.
      create trigger remove_moved_photo_files after delete on moved_photo_files
        for each row when (old.deleted_at is null) execute function remove_photo_files();

      -- For earlier moves the time begins now.
      with recursive identity(move_id, person_id, moved_at) as (
        select account_migrations.id, new_person_id, account_migrations.created_at
        from account_migrations join people on people.id = old_person_id and people.pod_id is null
        where remote_photo_path is not null
        union
        select move_id, new_person_id, moved_at
        from identity join account_migrations on old_person_id = identity.person_id
      )
      insert into moved_photo_files (photo_id, name, moved_at)
      select photos.id, photos.name, ${now}
      from identity
      join photos on photos.author_id = identity.person_id and photos.remote_path is not null
        and photos.created_at < identity.moved_at
      on conflict do nothing
    `)
  },

  async down(db) {
    await db.raw(`
      drop trigger note_moved_photo_file on photos;
      drop function note_moved_photo_file();
      drop table moved_photo_files
    `)
  },
}
