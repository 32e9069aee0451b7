import { type Migration, now } from './migration.js'

export const filters: Migration = {
  async up(db) {
    await db.raw(`
      create table filters (
        id bigint generated always as identity primary key,
        kind text not null check (kind in ('word', 'phrase', 'pattern', 'link_host', 'link_prefix', 'tag')),
        -- In the form in which texts are compared.
        value text not null,
        fields text[] not null,
        origin text not null default 'both' check (origin in ('local', 'remote', 'both')),
        -- Only people who are known for less time.
        account_age_days integer check (account_age_days > 0),
        exempt_followed boolean not null default true,
        is_private boolean not null default false,
        action text not null check (action in ('count', 'flag', 'hide', 'reject')),
        state text not null default 'trial' check (state in ('trial', 'active', 'off')),
        -- Raised by each change: the sum over all rows shows processes that a filter has changed.
        version bigint not null default 1,
        created_by text not null,
        created_at timestamptz(3) not null default ${now},
        changed_at timestamptz(3) not null default ${now}
      );

      create table filter_days (
        filter_id bigint not null references filters on delete cascade,
        day date not null,
        hits integer not null,
        primary key (filter_id, day)
      );
      create index filter_days_day on filter_days (day);

      -- The latest hits of each filter. Those of private content have no text.
      create table filter_hits (
        id bigint generated always as identity primary key,
        filter_id bigint not null references filters on delete cascade,
        at timestamptz(3) not null,
        target_type text not null check (target_type in ('post', 'comment', 'person', 'message')),
        target_guid text collate "C" not null,
        author_address text collate "C" not null,
        field text not null,
        excerpt text,
        is_public boolean not null,
        check (is_public or excerpt is null),
        effect text not null check (effect in ('counted', 'flagged', 'hidden', 'rejected'))
      );
      create index filter_hits_filter_id on filter_hits (filter_id, id);
    `)
  },

  async down(db) {
    await db.raw('drop table filter_hits, filter_days, filters')
  },
}
