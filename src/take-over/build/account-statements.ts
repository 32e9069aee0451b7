import { insertSkippedRowsSql, isCopiedSql, settingSql, timeOrNullSql, timeSql } from './sql.js'

const BUILT_AT_SQL = `${settingSql('built_at')}::timestamptz`

/** The time of the last use of an account. If only applications use it, the time of its newest token. */
const LAST_SEEN_SQL = `coalesce(
  greatest(source.last_seen, source.current_sign_in_at, source.last_sign_in_at), used.at
)`

/** The time of the newest token of each account. All tokens are grouped at once, because the old pod keeps expired ones. */
const TOKEN_TIMES_SQL = `
  select authorizations.user_id, max(tokens.created_at) as at from take_over.o_auth_access_tokens as tokens
  join take_over.authorizations on authorizations.id = tokens.authorization_id group by authorizations.user_id`

/** If accounts have the same e-mail address, the account that was used last keeps it. */
const EMAILS_SQL = `
  select id, email from (
    select id, email, row_number() over (
      partition by lower(email) order by coalesce(last_seen, timestamp '1970-01-01') desc, id
    ) as number
    from take_over.users where email <> ''
  ) as numbered
  where number = 1 and email !~ '^deletedaccount_.*@example\\.org$'`

/** A language tag that JavaScript can read: `de_formal` becomes `de-formal`; other forms are shortened to their first part. */
const LANGUAGE_SQL = `case
  when source.language = 'hy' then 'hye'
  when source.language ~ '^[a-z]{2,3}([_-][A-Za-z]{4})?([_-]([A-Za-z]{2}|[0-9]{3}))?([_-]([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))?$'
    then replace(source.language, '_', '-')
  else coalesce(substring(source.language from '^([a-z]{2,3})([_-]|$)'), 'en')
end`

const INSERT_USERS_SQL = `
  insert into users (
    id, person_id, username, email, role, language, settings, last_sign_in_at, locked_at, closed_at, created_at, signed_up_at,
    follow_back_aspect_id, email_confirmed_at, unconfirmed_email, mail_enabled, default_post_public
  ) overriding system value
  select source.id, people.id, lower(source.username), kept.email,
    case when people.closed_at is null then (
      select case when bool_or(name = 'admin') then 'admin' else 'moderator' end
      from take_over.roles join take_over.map_people as held on held.id = roles.person_id
      where held.new_id = people.id and name in ('admin', 'moderator') having count(*) > 0
    ) end,
    ${LANGUAGE_SQL},
    jsonb_build_object('diaspora', jsonb_strip_nulls(jsonb_build_object(
      'show_community_spotlight_in_stream', source.show_community_spotlight_in_stream, 'color_theme', source.color_theme,
      'getting_started', source.getting_started, 'remove_after', ${timeOrNullSql('source.remove_after')},
      'invited_by_id', source.invited_by_id
    ))),
    ${timeOrNullSql(LAST_SEEN_SQL)}, case when people.closed_at is null then ${timeOrNullSql('source.locked_at')} end,
    people.closed_at, ${timeSql('source.created_at', 'source.updated_at')}, ${timeSql('source.created_at', 'source.updated_at')},
    case when source.auto_follow_back then (
      select aspects.id from take_over.aspects where aspects.id = source.auto_follow_back_aspect_id and aspects.user_id = source.id
    ) end,
    case when kept.email is not null then ${BUILT_AT_SQL} end, nullif(source.unconfirmed_email, ''),
    source.disable_mail is not true, coalesce(source.post_default_public, false)
  from take_over.users as source
  join take_over.map_people as map on map.user_id = source.id and map.new_id = map.id
  join people on people.id = map.new_id
  left join (${EMAILS_SQL}) as kept on kept.id = source.id
  left join (${TOKEN_TIMES_SQL}) as used on used.user_id = source.id`

const INSERT_PREFERENCES_SQL = `
  insert into mail_preferences (user_id, kind, delivery)
  select distinct users.id, email_type, 'never' from take_over.user_preferences as source join users on users.id = source.user_id
  where email_type in (
    'someone_reported', 'mentioned', 'mentioned_in_comment', 'comment_on_post', 'private_message', 'started_sharing', 'also_commented',
    'liked', 'liked_comment', 'reshared', 'contacts_birthday'
  )`

const INSERT_ASPECTS_SQL = `
  insert into aspects (id, user_id, name, position, created_at, post_default) overriding system value
  select source.id, source.user_id, (select name from take_over.map_aspects where map_aspects.id = source.id),
    row_number() over (partition by source.user_id order by source.order_id nulls last, source.id) - 1,
    ${timeSql('source.created_at', 'source.updated_at')}, coalesce(source.post_default, false)
  from take_over.aspects as source where ${isCopiedSql('aspects', 'source.id')}`

/** The name of an aspect; a later one with a name that differs only in case gets the first free number. */
const FREE_NAMES_SQL = `
  create unlogged table take_over.map_aspects (id bigint primary key, name text not null);
  insert into take_over.map_aspects
  select id, name || case when number = 1 then '' else ' ' || number end from (
    select id, name, row_number() over (partition by user_id, lower(name) order by id) as number from take_over.aspects
  ) as numbered;
  do $$
  declare doubled record; number int;
  begin
    for doubled in
      select map.id, source.name, source.user_id from take_over.map_aspects as map join take_over.aspects as source using (id)
      where map.name <> source.name and exists (
        select from take_over.map_aspects as other join take_over.aspects as owned using (id)
        where owned.user_id = source.user_id and other.id <> map.id and lower(other.name) = lower(map.name)
      ) order by map.id
    loop
      number := 2;
      while exists (
        select from take_over.map_aspects as other join take_over.aspects as owned using (id)
        where owned.user_id = doubled.user_id and other.id <> doubled.id and lower(other.name) = lower(doubled.name || ' ' || number)
      ) loop
        number := number + 1;
      end loop;
      update take_over.map_aspects set name = doubled.name || ' ' || number where id = doubled.id;
    end loop;
  end $$`

const INSERT_CONTACTS_SQL = `
  insert into contacts (id, user_id, person_id, sharing, receiving, created_at) overriding system value
  select source.id, source.user_id, map.new_id, coalesce(source.sharing, false),
    coalesce(source.receiving, false) or member.contact_id is not null, ${timeSql('source.created_at', 'source.updated_at')}
  from take_over.contacts as source join take_over.map_people as map on map.id = source.person_id
  left join (select distinct contact_id from take_over.aspect_memberships) as member on member.contact_id = source.id
  where ${isCopiedSql('contacts', 'source.id')}`

const SKIPPED_CONTACTS_SQL = `
  select source.id, case
    when users.id is null or people.id is null then 'D07'
    when users.person_id = people.id or people.closed_at is not null
      or source.sharing is not true and source.receiving is not true and member.contact_id is null then 'D13'
    when row_number() over (partition by source.user_id, map.new_id order by source.id) > 1 then 'D09'
  end as code
  from take_over.contacts as source
  left join users on users.id = source.user_id
  left join take_over.map_people as map on map.id = source.person_id
  left join people on people.id = map.new_id
  left join (select distinct contact_id from take_over.aspect_memberships) as member on member.contact_id = source.id`

const SKIPPED_MEMBERSHIPS_SQL = `
  select source.id, case
    when aspects.id is null or contacts.id is null or contacts.user_id <> aspects.user_id then 'D07'
    when row_number() over (partition by source.aspect_id, source.contact_id order by source.id) > 1 then 'D09'
  end as code
  from take_over.aspect_memberships as source
  left join aspects on aspects.id = source.aspect_id left join contacts on contacts.id = source.contact_id`

const SKIPPED_BLOCKS_SQL = `
  select source.id, case
    when users.id is null or map.new_id is null then 'D07'
    when users.person_id = map.new_id then 'D13'
    when row_number() over (partition by source.user_id, map.new_id order by source.id) > 1 then 'D09'
  end as code
  from take_over.blocks as source left join users on users.id = source.user_id
  left join take_over.map_people as map on map.id = source.person_id`

/** Accounts, their preferences, aspects and contacts. Their secrets follow in `insert-secrets.ts`. */
export const accountStatements: readonly string[] = [
  INSERT_USERS_SQL,
  insertSkippedRowsSql(
    'users',
    `select source.id, case when users.id is null then 'D07' end as code
     from take_over.users as source left join users on users.id = source.id`,
  ),
  insertSkippedRowsSql(
    'roles',
    `select source.id, case
       when people.id is null then 'D07'
       when people.closed_at is not null then 'closed'
       when source.name = 'spotlight' then null
       when people.pod_id is not null then 'remote'
       when source.name not in ('admin', 'moderator') then 'unknown'
     end as code
     from take_over.roles as source left join take_over.map_people as map on map.id = source.person_id
     left join people on people.id = map.new_id`,
  ),
  insertSkippedRowsSql(
    'account_deletions',
    `select source.id, case when people.id is null then 'D07' end as code
     from take_over.account_deletions as source left join take_over.map_people as map on map.id = source.person_id
     left join people on people.id = map.new_id`,
  ),
  INSERT_PREFERENCES_SQL,
  insertSkippedRowsSql(
    'user_preferences',
    `select source.id, case
       when users.id is null then 'D07' when chosen.kind is null then 'unknown'
       when row_number() over (partition by source.user_id, source.email_type order by source.id) > 1 then 'D09'
     end as code
     from take_over.user_preferences as source left join users on users.id = source.user_id
     left join mail_preferences as chosen on chosen.user_id = users.id and chosen.kind = source.email_type`,
  ),
  FREE_NAMES_SQL,
  insertSkippedRowsSql(
    'aspects',
    `select source.id, case when users.id is null then 'D07' end as code
     from take_over.aspects as source left join users on users.id = source.user_id`,
  ),
  INSERT_ASPECTS_SQL,
  insertSkippedRowsSql('contacts', SKIPPED_CONTACTS_SQL),
  INSERT_CONTACTS_SQL,
  insertSkippedRowsSql('aspect_memberships', SKIPPED_MEMBERSHIPS_SQL),
  `insert into aspect_memberships (aspect_id, contact_id, created_at)
   select aspect_id, contact_id, ${timeSql('created_at', 'updated_at')} from take_over.aspect_memberships as source
   where ${isCopiedSql('aspect_memberships', 'source.id')}`,
  insertSkippedRowsSql('blocks', SKIPPED_BLOCKS_SQL),
  `insert into blocks (user_id, person_id, created_at)
   select source.user_id, map.new_id, ${BUILT_AT_SQL} from take_over.blocks as source
   join take_over.map_people as map on map.id = source.person_id where ${isCopiedSql('blocks', 'source.id')}`,
]
