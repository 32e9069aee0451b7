import { type Migration, now } from './migration.js'

/**
 * Rules of moderators for e-mail addresses, mail domains and networks; the addresses from which accounts were made and used; indexes for
 * the counts of rules for pods and for the order of cases.
 */
export const networkRules: Migration = {
  async up(db) {
    await db.raw(`
      create table mail_rules (
        id bigint generated always as identity primary key,
        kind text not null check (kind in ('email', 'domain')),
        -- MAC of the canonical form of an e-mail address, or of a domain, which includes its subdomains.
        mac bytea not null unique,
        -- The domain, also of an e-mail address: the rest of it is not stored.
        domain text collate "C" not null,
        severity text not null check (severity in ('reject', 'approve')),
        comment text not null default '',
        until timestamptz(3),
        hits bigint not null default 0,
        created_by text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index mail_rules_until on mail_rules (until) where until is not null;

      create table ip_rules (
        id bigint generated always as identity primary key,
        network cidr not null unique,
        severity text not null check (severity in ('sign_up_approval', 'sign_up_block', 'no_access')),
        comment text not null default '',
        until timestamptz(3),
        hits bigint not null default 0,
        created_by text not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index ip_rules_until on ip_rules (until) where until is not null;

      -- The addresses of sign-ups that wait, by their id in pending_sign_ups, a table of a later migration.
      create table sign_up_addresses (
        pending_id bigint primary key,
        ip inet not null,
        created_at timestamptz(3) not null default ${now}
      );
      create index sign_up_addresses_created_at on sign_up_addresses (created_at);

      -- After 30 days these columns have only the /24 or /48 of the address.
      alter table users
        add column sign_up_ip inet,
        add column sign_in_ip inet,
        add column sign_in_at timestamptz(3);

      -- The domains of which a host is a part, its own first, for the rules that apply to it.
      create function pod_domains(host text) returns text[] language sql immutable parallel safe as $$
        select array(
          select array_to_string(labels[start:], '.')
          from (select string_to_array(regexp_replace($1, '^www\\.', ''), '.') as labels) as name
          cross join generate_subscripts(labels, 1) as start
          order by start
        )
      $$;
      create index pods_domains on pods using gin (pod_domains(host));
      create index moderation_cases_listed on moderation_cases (
        (case state when 'open' then 0 when 'taken' then 1 else 2 end), reporter_count desc, first_reported_at, id
      );
      create index moderation_cases_taken on moderation_cases (changed_at) where state = 'taken';
    `)
  },

  async down(db) {
    await db.raw(`
      drop index moderation_cases_taken, moderation_cases_listed, pods_domains;
      drop function pod_domains(text);
      alter table users drop column sign_in_at, drop column sign_in_ip, drop column sign_up_ip;
      drop table sign_up_addresses, ip_rules, mail_rules;
    `)
  },
}
