import { type Migration, now } from './migration.js'

export const clusters: Migration = {
  async up(db) {
    await db.raw(`
      -- How far a periodic job has read a table. Rows may be committed in another order than that of their ids, so the job reads those
      -- after safe_id again.
      create table read_positions (
        source text collate "C" primary key,
        safe_id bigint not null,
        last_id bigint not null
      );

      -- Keys of public content of the last hours, by which content has something in common: texts, links, mentions, photos.
      create table content_keys (
        key text collate "C" not null,
        type text not null check (type in ('post', 'comment', 'conversation')),
        content_id bigint not null,
        author_id bigint not null,
        -- The author of the post.
        owner_id bigint not null,
        at timestamptz(3) not null,
        primary key (key, type, content_id)
      );
      create index content_keys_at on content_keys (at);

      create table clusters (
        id bigint generated always as identity primary key,
        key text collate "C" not null,
        kind text not null check (kind in ('text', 'link', 'mentions', 'photo')),
        -- The link or photo address, or the beginning of the first text.
        label text not null,
        state text not null default 'open' check (state in ('open', 'cleaned', 'dismissed')),
        case_id bigint references moderation_cases on delete set null,
        first_at timestamptz(3) not null default ${now},
        last_at timestamptz(3) not null default ${now}
      );
      create unique index clusters_open on clusters (key) where state = 'open';
      create index clusters_key on clusters (key);
      create index clusters_case_id on clusters (case_id) where case_id is not null;

      create table cluster_items (
        cluster_id bigint not null references clusters on delete cascade,
        type text not null check (type in ('post', 'comment')),
        content_id bigint not null,
        author_id bigint not null references people on delete cascade,
        at timestamptz(3) not null,
        primary key (cluster_id, type, content_id)
      );
      create index cluster_items_author_id on cluster_items (author_id);
      create index cluster_items_content on cluster_items (content_id, type);
    `)
  },

  async down(db) {
    await db.raw('drop table cluster_items, clusters, content_keys, read_positions')
  },
}
