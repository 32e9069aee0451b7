import { guidSql, insertSkippedRowsSql, isCopiedSql, settingSql, timeOrNullSql, timeSql } from './sql.js'

const OWN_HOSTS_SQL = `(${settingSql('host')}, 'www.' || ${settingSql('host')})`
const DEFAULT_PORTS_SQL = `(-1, 0, 80, 443)`

/** A row for each pod of the source; `new_id` null: it has no usable host, or is this pod. The lowest id of doubled ones is kept. */
const MAP_PODS_SQL = `
  create unlogged table take_over.map_pods as
  select id, host, port, case
      when host is null or host !~ '^[^[:space:]/]+$' or host in ${OWN_HOSTS_SQL} or host || ':' || port in ${OWN_HOSTS_SQL}
        or port not between 1 and 65535 then null
      else first_value(id) over (partition by host, port order by id)
    end as new_id
  from (
    select id, lower(trim(host)) as host, case when coalesce(port, -1) in ${DEFAULT_PORTS_SQL} then 443 else port end as port
    from take_over.pods
  ) as normal`

/**
 * A row for each person. \`new_id\`: the person that it becomes, or null. Of two handles that differ only in case, the local person
 * stays, else the lowest id.
 */
const MAP_PEOPLE_SQL = `
  create unlogged table take_over.map_people as
  with judged as (
    select people.id, lower(people.diaspora_handle) as address, users.id as user_id, map_pods.new_id as pod_id,
      lower(people.diaspora_handle) ~ '^[[:alnum:]._-]+@([[:alnum:].-]+|\\[[0-9a-f:.]+\\])(:[0-9]+)?$'
        and length(people.diaspora_handle) <= 255 as is_valid,
      people.owner_id is not null or split_part(lower(people.diaspora_handle), '@', 2) in ${OWN_HOSTS_SQL} as is_local
    from take_over.people
    left join take_over.users on users.id = people.owner_id
    left join take_over.map_pods on map_pods.id = people.pod_id
  )
  select id, address, user_id, pod_id, is_local, case
      when is_valid then first_value(id) over (partition by is_valid, address order by user_id is null, id)
    end as new_id
  from judged`

const indexPeople = `create unique index on take_over.map_people (id)`

/** The pods of remote people whose row names none. */
const PODS_OF_HANDLES_SQL = `
  with missing as (
    select distinct host, coalesce(nullif(port, '')::int, 443) as port from (
      select substring(split_part(address, '@', 2) from '^(.*?)(?::[0-9]+)?$') as host,
        coalesce(substring(split_part(address, '@', 2) from ':([0-9]{1,5})$'), '') as port
      from take_over.map_people where new_id = id and not is_local and pod_id is null
    ) as parts
  ), added as (
    insert into pods (id, host, port, created_at) overriding system value
    select (select coalesce(max(id), 0) from take_over.pods) + row_number() over (order by host, port),
      host, case when port in ${DEFAULT_PORTS_SQL} or port > 65535 then 443 else port end, ${settingSql('copied_at')}::timestamptz
    from missing
    on conflict (host, port) do nothing
  )
  select 1`

const POD_OF_HANDLE_SQL = `
  update take_over.map_people set pod_id = pods.id from pods
  where map_people.new_id = map_people.id and not is_local and pod_id is null
    and split_part(address, '@', 2) in (pods.host, pods.host || ':' || pods.port)
    and (pods.port = 443 or split_part(address, '@', 2) = pods.host || ':' || pods.port)`

const STATUS_SQL = `(array['unchecked', 'no_errors', 'dns_failed', 'net_failed', 'ssl_failed', 'http_failed', 'version_failed',
  'unknown_error'])[coalesce(source.status, 0) + 1]`

const INSERT_PODS_SQL = `
  insert into pods (
    id, host, port, ssl, status, last_error, offline_since, checked_at, check_wanted, blocked_at, created_at, software,
    software_version
  ) overriding system value
  select source.id, map.host, map.port, coalesce(source.ssl, false), coalesce(${STATUS_SQL}, 'unknown_error'), nullif(source.error, ''),
    ${timeOrNullSql('source.offline_since')},
    case when source.checked_at > timestamp '1971-01-01' then ${timeOrNullSql('source.checked_at')} end,
    coalesce(source.scheduled_check, false), case when merged.blocked then ${timeSql('source.updated_at', 'source.created_at')} end,
    ${timeSql('source.created_at', 'source.updated_at')}, nullif(split_part(source.software, ' ', 1), ''),
    nullif(substr(source.software, strpos(source.software, ' ') + 1), source.software)
  from take_over.pods as source join take_over.map_pods as map on map.id = source.id and map.new_id = source.id
  join (
    select new_id, coalesce(bool_or(doubled.blocked), false) as blocked
    from take_over.map_pods join take_over.pods as doubled using (id) group by new_id
  ) as merged on merged.new_id = source.id`

/** The picture of a profile; null: the default picture. Relative addresses, and those of this pod under http, get the address of this pod. */
function pictureSql(column: string): string {
  return `case
    when ${column} is null or ${column} = '' or ${column} ~ '/user/default' then null
    when ${column} ~ '^/' then ${settingSql('url')} || ${column}
    when split_part(${column}, '/', 3) in ${OWN_HOSTS_SQL} and ${column} ~ '^https?://'
      then ${settingSql('url')} || substr(${column}, strpos(substr(${column}, 9), '/') + 8)
    else ${column}
  end`
}

const MAP_PROFILES_SQL = `
  create unlogged table take_over.map_profiles as
  select distinct on (map.new_id) map.new_id as person_id, source.id,
    nullif(first_name, '') as first_name, nullif(last_name, '') as last_name,
    ${pictureSql('image_url')} as image_url, ${pictureSql('image_url_small')} as image_url_small,
    ${pictureSql('image_url_medium')} as image_url_medium
  from take_over.profiles as source join take_over.map_people as map on map.id = source.person_id and map.new_id = map.id
  order by map.new_id, source.id`

const INSERT_PEOPLE_SQL = `
  insert into people (
    id, guid, address, pod_id, public_key, name, avatar_url, refreshed_at, stream_fetched_at, closed_at, created_at, proven_at,
    spotlight
  ) overriding system value
  select source.id, ${guidSql('people', 'source')}, map.address, case when map.is_local then null else map.pod_id end,
    source.serialized_public_key, trim(concat_ws(' ', profile.first_name, profile.last_name)),
    coalesce(profile.image_url_medium, profile.image_url),
    case when not map.is_local then ${timeSql('source.updated_at', 'source.created_at')} end,
    case when not map.is_local and (source.fetch_status >= 4 or authors.author_id is not null)
      then ${timeSql('source.updated_at', 'source.created_at')} end,
    case
      -- The closing of an account that was interrupted is completed when this pod opens.
      when map.user_id is not null and deleted.person_id is not null and deleted.completed_at is null then null
      when source.closed_account or map.is_local and map.user_id is null or deleted.person_id is not null
      then ${timeSql('deleted.completed_at', 'users.locked_at', 'source.updated_at')}
    end,
    ${timeSql('source.created_at', 'source.updated_at')},
    case when not map.is_local then ${timeSql('source.created_at', 'source.updated_at')} end,
    source.closed_account is not true and exists (
      select from take_over.roles where roles.person_id = source.id and roles.name = 'spotlight'
    )
  from take_over.people as source
  join take_over.map_people as map on map.id = source.id and map.new_id = source.id
  left join take_over.users on users.id = map.user_id
  left join take_over.map_profiles as profile on profile.person_id = source.id
  left join (select distinct author_id from take_over.posts) as authors on authors.author_id = source.id
  left join (
    select distinct on (person_id) person_id, completed_at from take_over.account_deletions order by person_id, id
  ) as deleted on deleted.person_id = source.id`

const INSERT_PROFILES_SQL = `
  insert into profiles (
    person_id, first_name, last_name, image_url, image_url_medium, image_url_small, bio, location, gender, birthday, searchable,
    public_details, nsfw, tags, accepted_at, updated_at
  )
  select people.id, map.first_name, map.last_name, map.image_url, map.image_url_medium, map.image_url_small,
    coalesce(source.bio, ''), coalesce(source.location, ''), nullif(source.gender, ''),
    case when source.birthday between date '0001-01-01' and date '9999-12-31' then to_char(source.birthday, 'YYYY-MM-DD') end,
    coalesce(source.searchable, people.closed_at is null), coalesce(source.public_details, false), coalesce(source.nsfw, false),
    coalesce(tagged.names, '{}'),
    case when people.pod_id is not null then ${timeSql('source.updated_at', 'source.created_at')} end,
    ${timeSql('source.updated_at', 'source.created_at')}
  from people
  left join take_over.map_profiles as map on map.person_id = people.id
  left join take_over.profiles as source on source.id = map.id
  left join (
    select taggable_id, (array_agg(name order by id))[1:5] as names from (
      select distinct on (taggable_id, lower(tags.name)) taggable_id, lower(tags.name) as name, taggings.id
      from take_over.taggings join take_over.tags on tags.id = taggings.tag_id
      where taggable_type = 'Profile' and coalesce(context, 'tags') = 'tags' and tags.name <> ''
      order by taggable_id, lower(tags.name), taggings.id
    ) as names group by taggable_id
  ) as tagged on tagged.taggable_id = source.id`

const INSERT_MIGRATIONS_SQL = `
  insert into account_migrations (old_person_id, new_person_id, signature, remote_photo_path, created_at)
  select old.new_id, new.new_id, nullif(source.signature, ''), source.remote_photo_path, ${timeSql('source.completed_at')}
  from take_over.account_migrations as source
  join take_over.map_people as old on old.id = source.old_person_id
  join take_over.map_people as new on new.id = source.new_person_id
  where ${isCopiedSql('account_migrations', 'source.id')}
  order by source.id`

/** Pods, people, profiles and completed migrations. */
export const peopleStatements: readonly string[] = [
  MAP_PODS_SQL,
  MAP_PEOPLE_SQL,
  indexPeople,
  insertSkippedRowsSql(
    'pods',
    `select id, case when new_id is distinct from id then 'D06' end as code from take_over.map_pods`,
  ),
  INSERT_PODS_SQL,
  PODS_OF_HANDLES_SQL,
  POD_OF_HANDLE_SQL,
  `update take_over.map_people set new_id = null where not is_local and pod_id is null`,
  insertSkippedRowsSql(
    'people',
    `select id, case when new_id is null then 'D02' when new_id <> id then 'D01' end as code from take_over.map_people`,
  ),
  MAP_PROFILES_SQL,
  INSERT_PEOPLE_SQL,
  INSERT_PROFILES_SQL,
  insertSkippedRowsSql(
    'profiles',
    `select source.id, case when people.id is null then 'D07' when map.id is null then 'D04' end as code
     from take_over.profiles as source left join take_over.map_profiles as map on map.id = source.id
     left join people on people.id = source.person_id`,
  ),
  insertSkippedRowsSql(
    'account_migrations',
    `select source.id, case
       when old.new_id is null or new.new_id is null or old.new_id = new.new_id then 'D07'
       when source.completed_at is null then 'not completed'
       when row_number() over (partition by old.new_id order by source.completed_at is null, source.id) > 1 then 'D09'
     end as code
     from take_over.account_migrations as source
     left join take_over.map_people as old on old.id = source.old_person_id
     left join take_over.map_people as new on new.id = source.new_person_id`,
  ),
  INSERT_MIGRATIONS_SQL,
]
