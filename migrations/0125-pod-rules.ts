import { type Migration, now } from './migration.js'

/** Rules of operators for other pods, by domain. The columns of `pods` follow the rules, so that other statements read no rules. */
export const podRules: Migration = {
  async up(db) {
    await db.raw(`
      create table pod_rules (
        id bigint generated always as identity primary key,
        domain text collate "C" not null check (domain = lower(domain) and length(domain) between 1 and 253),
        subdomains boolean not null,
        -- Null: every port. 443 stands for both default ports.
        port integer check (port between 1 and 65535 and port <> 80),
        state text not null check (state in ('normal', 'limited', 'blocked')),
        reason text not null,
        public_comment text not null default '',
        obfuscate boolean not null default false,
        -- Columns of imported lists: stored and exported, without effect.
        reject_media boolean not null default false,
        reject_reports boolean not null default false,
        until timestamptz(3),
        source text not null check (source in ('manual', 'import')),
        batch_id bigint,
        created_by text not null,
        created_at timestamptz(3) not null default ${now},
        updated_at timestamptz(3) not null default ${now}
      );
      create unique index pod_rules_domain on pod_rules (domain, coalesce(port, 0));
      create index pod_rules_until on pod_rules (until) where until is not null;
      create index pod_rules_batch_id on pod_rules (batch_id) where batch_id is not null;

      alter table pods add column limited_at timestamptz(3);

      -- The state of a host by the rule with the longest domain; of two rules for one domain, that with a port.
      create function pod_rule_state(host text, port integer) returns text language sql stable parallel safe as $$
        select state from pod_rules
        where domain = any(array(
            select array_to_string(labels[start:], '.')
            from (select string_to_array(regexp_replace($1, '^www\\.', ''), '.') as labels) as name
            cross join generate_subscripts(labels, 1) as start
          ))
          and (subdomains or domain = regexp_replace($1, '^www\\.', ''))
          and (pod_rules.port is null or pod_rules.port = $2)
          and (until is null or until > now())
        order by length(domain) desc, pod_rules.port nulls last
        limit 1
      $$;

      -- Applies the rule to a pod that is inserted after it. The lock orders this insertion and a rule that is being made.
      create function apply_pod_rule() returns trigger language plpgsql as $$
      declare
        state text;
      begin
        perform pg_advisory_xact_lock_shared(hashtext('pod_rules'));
        state := pod_rule_state(new.host, new.port);
        if state = 'blocked' then new.blocked_at := coalesce(new.blocked_at, ${now}); end if;
        if state = 'limited' then new.limited_at := coalesce(new.limited_at, ${now}); end if;
        return new;
      end
      $$;
      create trigger pods_apply_rule before insert on pods for each row execute function apply_pod_rule();

      insert into pod_rules (domain, subdomains, port, state, reason, source, created_by, created_at)
      select distinct on (regexp_replace(host, '^www\\.', ''), port)
        regexp_replace(host, '^www\\.', ''), false, port, 'blocked', 'Blocked before pods had rules.', 'manual', 'command', blocked_at
      from pods where blocked_at is not null
      order by regexp_replace(host, '^www\\.', ''), port, blocked_at;
    `)
  },

  async down(db) {
    await db.raw(`
      drop trigger pods_apply_rule on pods;
      drop function apply_pod_rule();
      drop function pod_rule_state(text, integer);
      alter table pods drop column limited_at;
      drop table pod_rules;
    `)
  },
}
