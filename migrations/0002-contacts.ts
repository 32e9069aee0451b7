import { type Migration, now } from './migration.js'

export const contacts: Migration = {
  async up(db) {
    await db.raw(`
      create table aspects (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        name text not null,
        position integer not null,
        created_at timestamptz(3) not null default ${now}
      );
      create unique index aspects_name on aspects (user_id, lower(name));
      create index aspects_position on aspects (user_id, position, id);

      -- Null: the user follows no person back automatically.
      alter table users add column follow_back_aspect_id bigint references aspects on delete set null;
      create index users_follow_back_aspect_id on users (follow_back_aspect_id) where follow_back_aspect_id is not null;

      create table contacts (
        id bigint generated always as identity primary key,
        user_id bigint not null references users on delete cascade,
        person_id bigint not null references people on delete cascade,
        -- The person shares with the user.
        sharing boolean not null default false,
        -- The user shares with the person.
        receiving boolean not null default false,
        created_at timestamptz(3) not null default ${now},
        unique (user_id, person_id),
        check (sharing or receiving)
      );
      create index contacts_person_id on contacts (person_id);

      create table aspect_memberships (
        aspect_id bigint not null references aspects on delete cascade,
        contact_id bigint not null references contacts on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (aspect_id, contact_id)
      );
      create index aspect_memberships_contact_id on aspect_memberships (contact_id);

      create table blocks (
        user_id bigint not null references users on delete cascade,
        person_id bigint not null references people on delete cascade,
        created_at timestamptz(3) not null default ${now},
        primary key (user_id, person_id)
      );
      create index blocks_person_id on blocks (person_id);
    `)
  },

  async down(db) {
    await db.raw(`
      alter table users drop column follow_back_aspect_id;
      drop table blocks, aspect_memberships, contacts, aspects;
    `)
  },
}
