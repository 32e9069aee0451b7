import { guidSql, insertSkippedRowsSql, isCopiedSql, settingOnceSql, settingSql, timeOfContentSql } from './sql.js'

const REMOTE = 'map.user_id is null and not map.is_local'

/** Rows of the source by their guid, for reshares and photos. */
const MAP_POSTS_SQL = `
  create unlogged table take_over.map_posts as
  select source.id, source.guid, map.new_id as author_id,
    case when source.type = 'Reshare' then 'Reshare' else 'StatusMessage' end as type,
    source.type = 'Reshare' or source.public as public, source.root_guid
  from take_over.posts as source
  join take_over.map_people as map on map.id = source.author_id and map.new_id is not null
  where source.type in ('StatusMessage', 'Reshare') or source.text <> ''`

const MAP_ROOTS_SQL = `
  create unlogged table take_over.map_roots as
  select reshares.id, roots.id as root_id, row_number() over (partition by reshares.author_id, roots.id order by reshares.id) as number
  from take_over.map_posts as reshares join take_over.map_posts as roots on roots.guid = reshares.root_guid and roots.public
  where reshares.type = 'Reshare' and roots.id <> reshares.id`

/** Data that the old pod has read from a linked page. The mark excludes it from messages: the author has not written it. */
const EMBED_SQL = `coalesce(
  (select jsonb_strip_nulls(jsonb_build_object('url', graph.url, 'title', graph.title, 'description', graph.description,
     'image', graph.image, 'video_url', graph.video_url, 'cached', true))
   from take_over.open_graph_caches as graph where graph.id = source.open_graph_cache_id and graph.url is not null),
  (select jsonb_strip_nulls(jsonb_build_object('url', oembed.url, 'title', oembed.data ->> 'title',
     'description', oembed.data ->> 'description', 'image', oembed.data ->> 'thumbnail_url', 'cached', true))
   from take_over.o_embed_caches as oembed where oembed.id = source.o_embed_cache_id)
)`

const INSERT_POSTS_SQL = `
  insert into posts (
    id, guid, author_id, type, public, text, provider_display_name, embed, root_id, interacted_at, created_at, stored_at
  ) overriding system value
  select source.id, ${guidSql('posts', 'source')}, kept.author_id, kept.type, kept.public,
    case when kept.type = 'Reshare' then '' else coalesce(source.text, '') end, nullif(source.provider_display_name, ''),
    case when source.open_graph_cache_id is not null or source.o_embed_cache_id is not null then ${EMBED_SQL} end, roots.root_id,
    ${timeOfContentSql(REMOTE, 'source.interacted_at', 'source.created_at', 'source.updated_at')},
    ${timeOfContentSql(REMOTE, 'source.created_at', 'source.updated_at')}, ${timeOfContentSql(REMOTE, 'source.created_at', 'source.updated_at')}
  from take_over.posts as source
  join take_over.map_posts as kept on kept.id = source.id
  join take_over.map_people as map on map.id = kept.author_id
  left join take_over.map_roots as roots on roots.id = source.id
  where ${isCopiedSql('posts', 'source.id')}`

/** The path is null, in the list, or of this host at any port. */
const OWN_PATH_SQL = `(
  source.remote_photo_path is null or source.remote_photo_path = any(${settingOnceSql('own_paths', 'text[]')}::text[])
  or source.remote_photo_path ~* '^https?://[^/]+/+uploads/images/+$'
    and regexp_replace(split_part(lower(source.remote_photo_path), '/', 3), '^www\\.|:[0-9]+$', '', 'g') = ${settingSql('hostname')}
)`

/** The largest number of a position, which is a smallint. */
const MAX_POSITION = 32_767

const INSERT_PHOTOS_SQL = `
  insert into photos (
    id, guid, author_id, post_id, post_guid, position, public, pending, text, remote_path, name, height, width, created_at
  ) overriding system value
  select source.id, ${guidSql('photos', 'source')}, map.new_id, posts.id,
    case when posts.id is null then nullif(source.status_message_guid, '') end,
    case when posts.id is null then 0 else least(row_number() over (partition by posts.id order by source.id) - 1, ${MAX_POSITION}) end,
    coalesce(posts.public, source.public), source.pending, nullif(source.text, ''),
    case
      when map.is_local and ${OWN_PATH_SQL} then null
      when source.remote_photo_path is null then 'https://' || split_part(map.address, '@', 2) || '/uploads/images/'
      else source.remote_photo_path
    end,
    coalesce(nullif(source.remote_photo_name, ''), nullif(source.processed_image, ''), source.unprocessed_image, ''),
    source.height, source.width,
    ${timeOfContentSql(REMOTE, 'source.created_at', 'source.updated_at', `posts.created_at at time zone 'UTC'`)}
  from take_over.photos as source
  join take_over.map_people as map on map.id = source.author_id
  left join take_over.map_posts as kept on kept.guid = source.status_message_guid
  left join posts on posts.id = kept.id
  where ${isCopiedSql('photos', 'source.id')}`

/**
 * The files of people who had moved away from the old pod with their photos: the copied folder contains them. Triggers do not run. The time
 * for which they are served begins with the take-over.
 */
export const MOVED_PHOTO_FILES_SQL = `
  with recursive identity(move_id, person_id, moved_at) as (
    select account_migrations.id, new_person_id, account_migrations.created_at
    from account_migrations join people on people.id = old_person_id and people.pod_id is null
    where remote_photo_path is not null
    union
    select move_id, new_person_id, moved_at
    from identity join account_migrations on old_person_id = identity.person_id
  )
  insert into moved_photo_files (photo_id, name, moved_at)
  select photos.id, photos.name, date_trunc('milliseconds', now())
  from identity
  join photos on photos.author_id = identity.person_id and photos.remote_path is not null and photos.name <> ''
    and photos.created_at < identity.moved_at
  on conflict do nothing`

/** Visibilities of posts and photos; those of public posts and photos have no meaning here. */
const sharedWith = (type: string, table: string) => `
  from take_over.aspect_visibilities as source
  left join ${table} as shared on shared.id = source.shareable_id
  left join users on users.person_id = shared.author_id
  left join aspects on aspects.id = source.aspect_id
  where source.shareable_type = '${type}'`

const skippedAspectVisibilities = (type: string, table: string) => `
  select source.id, case
    when shared.id is null or aspects.id is null or aspects.user_id is distinct from users.id then 'D07'
    when shared.public then 'public'
    when row_number() over (partition by source.shareable_id, source.aspect_id order by source.id) > 1 then 'D09'
  end as code ${sharedWith(type, table)}`

const skippedShareVisibilities = (type: string, table: string) => `
  select source.id, case
    when shared.id is null or users.id is null then 'D07'
    when shared.public then 'public'
    when row_number() over (partition by source.shareable_id, source.user_id order by source.id) > 1 then 'D09'
  end as code
  from take_over.share_visibilities as source
  left join ${table} as shared on shared.id = source.shareable_id
  left join users on users.id = source.user_id
  where source.shareable_type = '${type}'`

const unknownType = (table: string) => `
  select id, 'D15' as code from take_over.${table} where shareable_type not in ('Post', 'Photo')`

const visibilities: readonly string[] = [
  insertSkippedRowsSql('aspect_visibilities', skippedAspectVisibilities('Post', 'posts')),
  insertSkippedRowsSql('aspect_visibilities', skippedAspectVisibilities('Photo', 'photos')),
  insertSkippedRowsSql('aspect_visibilities', unknownType('aspect_visibilities')),
  `insert into post_aspects (post_id, aspect_id) select shareable_id, aspect_id from take_over.aspect_visibilities as source
   where shareable_type = 'Post' and ${isCopiedSql('aspect_visibilities', 'source.id')}`,
  `insert into photo_aspects (photo_id, aspect_id) select shareable_id, aspect_id from take_over.aspect_visibilities as source
   where shareable_type = 'Photo' and ${isCopiedSql('aspect_visibilities', 'source.id')}`,
  insertSkippedRowsSql('share_visibilities', skippedShareVisibilities('Post', 'posts')),
  insertSkippedRowsSql('share_visibilities', skippedShareVisibilities('Photo', 'photos')),
  insertSkippedRowsSql('share_visibilities', unknownType('share_visibilities')),
  `insert into post_visibilities (user_id, post_id, author_id, created_at)
   select source.user_id, posts.id, posts.author_id, posts.created_at
   from take_over.share_visibilities as source join posts on posts.id = source.shareable_id
   where shareable_type = 'Post' and ${isCopiedSql('share_visibilities', 'source.id')}`,
  `insert into photo_visibilities (user_id, photo_id) select user_id, shareable_id from take_over.share_visibilities as source
   where shareable_type = 'Photo' and ${isCopiedSql('share_visibilities', 'source.id')}`,
  `insert into hidden_posts (user_id, post_id, created_at)
   select hidden.user_id, hidden.post_id, ${settingSql('built_at')}::timestamptz from (
     select user_id, shareable_id as post_id from take_over.share_visibilities as source
     where hidden and shareable_type = 'Post' and ${isCopiedSql('share_visibilities', 'source.id')}
     union
     select users.id, listed.id::bigint from take_over.users as source join users on users.id = source.id
     cross join lateral jsonb_array_elements_text(case
       when jsonb_typeof(source.hidden_shareables -> 'Post') = 'array' then source.hidden_shareables -> 'Post' else '[]'
     end) as listed(id) where listed.id ~ '^[0-9]{1,18}$'
   ) as hidden join posts on posts.id = hidden.post_id`,
]

const polls: readonly string[] = [
  insertSkippedRowsSql(
    'polls',
    `select source.id, case
       when posts.id is null then 'D07'
       when row_number() over (partition by posts.id order by source.id) > 1 then 'D09'
     end as code from take_over.polls as source left join posts on posts.id = source.status_message_id`,
  ),
  `insert into polls (id, guid, post_id, question) overriding system value
   select source.id, ${guidSql('polls', 'source', 'source.number = 1')}, source.status_message_id, source.question
   from (select polls.*, row_number() over (partition by guid order by id) as number from take_over.polls) as source
   where ${isCopiedSql('polls', 'source.id')}`,
  insertSkippedRowsSql(
    'poll_answers',
    `select source.id, case when polls.id is null then 'D07' end as code
     from take_over.poll_answers as source left join polls on polls.id = source.poll_id`,
  ),
  `insert into poll_answers (id, guid, poll_id, position, answer) overriding system value
   select source.id, ${guidSql('poll_answers', 'source', 'source.number = 1')}, source.poll_id,
     row_number() over (partition by source.poll_id order by source.id) - 1, source.answer
   from (select poll_answers.*, row_number() over (partition by guid order by id) as number from take_over.poll_answers) as source
   where ${isCopiedSql('poll_answers', 'source.id')}`,
]

const locations: readonly string[] = [
  insertSkippedRowsSql(
    'locations',
    `select source.id, case
       when posts.id is null then 'D07'
       when coalesce(source.lat, '') = '' or coalesce(source.lng, '') = '' then 'incomplete'
       when row_number() over (
         partition by posts.id, coalesce(source.lat, '') = '' or coalesce(source.lng, '') = '' order by source.id
       ) > 1 then 'D09'
     end as code from take_over.locations as source left join posts on posts.id = source.status_message_id`,
  ),
  `insert into locations (post_id, address, lat, lng)
   select status_message_id, coalesce(address, ''), lat, lng from take_over.locations as source
   where ${isCopiedSql('locations', 'source.id')}`,
]

/** Posts with photos, places, polls and readers. */
export const postStatements: readonly string[] = [
  MAP_POSTS_SQL,
  'create unique index on take_over.map_posts (id)',
  'create index on take_over.map_posts (guid)',
  'analyze take_over.map_posts',
  MAP_ROOTS_SQL,
  'create unique index on take_over.map_roots (id)',
  insertSkippedRowsSql(
    'posts',
    `select source.id, case
       when map.new_id is null then 'D07' when kept.id is null then 'D15' when roots.number > 1 then 'D09'
     end as code
     from take_over.posts as source
     left join take_over.map_people as map on map.id = source.author_id
     left join take_over.map_posts as kept on kept.id = source.id
     left join take_over.map_roots as roots on roots.id = source.id`,
  ),
  INSERT_POSTS_SQL,
  'analyze posts',
  `update posts set root_id = null where root_id is not null and not exists (
     select from posts as roots where roots.id = posts.root_id
   )`,
  insertSkippedRowsSql(
    'photos',
    `select source.id, case when map.new_id is null then 'D07' end as code
     from take_over.photos as source left join take_over.map_people as map on map.id = source.author_id`,
  ),
  INSERT_PHOTOS_SQL,
  MOVED_PHOTO_FILES_SQL,
  ...visibilities,
  ...locations,
  ...polls,
]
