import { guidSql, insertSkippedRowsSql, isCopiedSql, timeOfContentSql, timeSql } from './sql.js'

const REMOTE = 'map.user_id is null and not map.is_local'
const OWN_TIMES = ['source.created_at', 'source.updated_at'] as const

const UTC_SECONDS_SQL = `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`

/** Texts that XML cannot carry were signed as they arrived, replaced. */
const xmlText = (text: string) =>
  `regexp_replace(${text}, '[\\x01-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]', '\\ufffd', 'g')`

interface SignedTable {
  readonly signatures: string
  readonly key: string
  /** Values of elements by name, as expressions over \`source\`, \`people\` and \`parent\`. */
  readonly values: Readonly<Record<string, string>>
}

/** The signature of a relayable and the texts that it covers, in their order; null where the source has no signature. */
function signatureColumns({ signatures, key, values }: SignedTable) {
  const cases = Object.entries(values).map(([name, value]) => `when '${name}' then ${value}`)
  return {
    // Plain joins, so that unsigned rows, which are the most, cost nothing.
    join: `left join take_over.${signatures} as signed on signed.${key} = source.id and signed.author_signature <> ''
      left join take_over.signature_orders as orders on orders.id = signed.signature_order_id`,
    signature: `case when orders.id is not null then translate(signed.author_signature, E' \\t\\n\\r\\f\\v', '') end`,
    elements: `case when orders.id is not null then (
      select jsonb_agg(jsonb_build_array(element.name, coalesce(
        case element.name ${cases.join(' ')}
          else case when jsonb_typeof(signed.additional_data) = 'object' then ${xmlText('signed.additional_data ->> element.name')} end
        end, ''
      )) order by element.position)
      from unnest(regexp_split_to_array(orders."order", '\\s+')) with ordinality as element(name, position)
      where element.name <> '' and element.name not like '%signature%'
    ) end`,
  }
}

const AUTHOR = { author: 'people.diaspora_handle', diaspora_handle: 'people.diaspora_handle', guid: 'source.guid' }
const CREATED_AT_SQL = `to_char(source.created_at, ${UTC_SECONDS_SQL})`

const signedComment: SignedTable = {
  signatures: 'comment_signatures',
  key: 'comment_id',
  values: {
    ...AUTHOR,
    parent_guid: 'parent.guid',
    target_guid: 'parent.guid',
    text: xmlText('source.text'),
    created_at: CREATED_AT_SQL,
  },
}

const signedLike: SignedTable = {
  signatures: 'like_signatures',
  key: 'like_id',
  values: {
    ...AUTHOR,
    parent_guid: 'coalesce(parent.guid, commented.guid)',
    target_guid: 'coalesce(parent.guid, commented.guid)',
    parent_type: 'source.target_type',
    target_type: 'source.target_type',
    created_at: CREATED_AT_SQL,
    positive: `case when source.positive is not false then 'true' else 'false' end`,
  },
}

const signedVote: SignedTable = {
  signatures: 'poll_participation_signatures',
  key: 'poll_participation_id',
  values: {
    ...AUTHOR,
    parent_guid: 'parent.guid',
    target_guid: 'parent.guid',
    poll_answer_guid: 'answers.guid',
    created_at: CREATED_AT_SQL,
  },
}

const commentSignature = signatureColumns(signedComment)
const likeSignature = signatureColumns(signedLike)
const voteSignature = signatureColumns(signedVote)

const comments: readonly string[] = [
  insertSkippedRowsSql(
    'comments',
    `select source.id, case
       when source.commentable_type <> 'Post' then 'D15' when posts.id is null or map.new_id is null then 'D07'
     end as code
     from take_over.comments as source
     left join posts on posts.id = source.commentable_id and source.commentable_type = 'Post'
     left join take_over.map_people as map on map.id = source.author_id`,
  ),
  `insert into comments (id, guid, post_id, author_id, text, author_signature, signed_elements, created_at, post_created_at)
   overriding system value
   select source.id, ${guidSql('comments', 'source')}, posts.id, map.new_id, source.text, ${commentSignature.signature}, ${commentSignature.elements},
     ${timeOfContentSql(REMOTE, ...OWN_TIMES, 'parent.created_at', 'parent.updated_at')},
     case when map.user_id is not null then posts.created_at end
   from take_over.comments as source
   join posts on posts.id = source.commentable_id
   join take_over.posts as parent on parent.id = posts.id
   join take_over.map_people as map on map.id = source.author_id
   join take_over.people on people.id = source.author_id
   ${commentSignature.join}
   where ${isCopiedSql('comments', 'source.id')}`,
  'analyze comments',
]

/** Notes rows whose post or comment, or whose person, is not there, and second rows of the same pair. */
function insertSkippedPairsSql(
  table: string,
  { target, person }: { readonly target: string; readonly person: string },
): string {
  return insertSkippedRowsSql(
    table,
    `select source.id, case
       when source.${target}_type not in ('Post', 'Comment') then 'D15'
       when coalesce(posts.id, comments.id) is null or map.new_id is null then 'D07'
       when row_number() over (
         partition by source.${target}_type, source.${target}_id, map.new_id order by source.id
       ) > 1 then 'D09'
     end as code
     from take_over.${table} as source
     left join posts on posts.id = source.${target}_id and source.${target}_type = 'Post'
     left join comments on comments.id = source.${target}_id and source.${target}_type = 'Comment'
     left join take_over.map_people as map on map.id = source.${person}`,
  )
}

const likes: readonly string[] = [
  insertSkippedPairsSql('likes', { target: 'target', person: 'author_id' }),
  `insert into likes (
     id, guid, author_id, post_id, comment_id, positive, author_signature, signed_elements, created_at, post_created_at
   ) overriding system value
   select source.id, ${guidSql('likes', 'source')}, map.new_id, posts.id, commented.id, source.positive is not false,
     ${likeSignature.signature}, ${likeSignature.elements},
     ${timeOfContentSql(REMOTE, ...OWN_TIMES, 'parent.created_at', 'commented.created_at', 'parent.updated_at')},
     case when map.user_id is not null then posts.created_at end
   from take_over.likes as source
   left join posts on posts.id = source.target_id and source.target_type = 'Post'
   left join take_over.posts as parent on parent.id = posts.id
   left join take_over.comments as commented on commented.id = source.target_id and source.target_type = 'Comment'
   join take_over.map_people as map on map.id = source.author_id
   join take_over.people on people.id = source.author_id
   ${likeSignature.join}
   where ${isCopiedSql('likes', 'source.id')}`,
]

const votes: readonly string[] = [
  insertSkippedRowsSql(
    'poll_participations',
    `select source.id, case
       when polls.id is null or answers.id is null or map.new_id is null then 'D07'
       when row_number() over (partition by source.poll_id, map.new_id, answers.id is null order by source.id) > 1 then 'D09'
     end as code
     from take_over.poll_participations as source
     left join polls on polls.id = source.poll_id
     left join poll_answers as answers on answers.id = source.poll_answer_id and answers.poll_id = polls.id
     left join take_over.map_people as map on map.id = source.author_id`,
  ),
  `insert into poll_participations (id, guid, poll_id, poll_answer_id, author_id, author_signature, signed_elements, created_at)
   overriding system value
   select source.id, ${guidSql('poll_participations', 'source', 'source.number = 1')}, source.poll_id, source.poll_answer_id, map.new_id,
     ${voteSignature.signature}, ${voteSignature.elements}, ${timeOfContentSql(REMOTE, ...OWN_TIMES, 'parent.created_at', 'parent.updated_at')}
   from (
     select poll_participations.*, row_number() over (partition by guid order by id) as number from take_over.poll_participations
   ) as source
   join take_over.polls as parent on parent.id = source.poll_id
   join take_over.poll_answers as answers on answers.id = source.poll_answer_id
   join take_over.map_people as map on map.id = source.author_id
   join take_over.people on people.id = source.author_id
   ${voteSignature.join}
   where ${isCopiedSql('poll_participations', 'source.id')}`,
]

const skippedSignatures = (table: string, key: string, source: string) =>
  insertSkippedRowsSql(
    table,
    `select ${key} as id, case when judged.id is null or skipped_rows.id is not null then 'D07' when author_signature = '' then 'D16' end as code
     from take_over.${table} left join take_over.${source} as judged on judged.id = ${key}
     left join take_over.skipped_rows on skipped_rows.source = '${source}' and skipped_rows.id = ${key}`,
  )

const participations: readonly string[] = [
  insertSkippedRowsSql(
    'participations',
    `select source.id, case
       when source.target_type <> 'Post' then 'D15'
       when posts.id is null or map.new_id is null then 'D07'
       when posts.author_id = map.new_id then 'author'
       when row_number() over (partition by posts.id, map.new_id order by source.id) > 1 then 'D09'
     end as code
     from take_over.participations as source
     left join posts on posts.id = source.target_id and source.target_type = 'Post'
     left join take_over.map_people as map on map.id = source.author_id`,
  ),
  `insert into participations (id, guid, post_id, author_id, count, created_at) overriding system value
   select source.id, ${guidSql('participations', 'source', 'source.number = 1')}, source.target_id, map.new_id,
     greatest(source.count, 1), ${timeOfContentSql(REMOTE, ...OWN_TIMES, 'parent.created_at', 'parent.updated_at')}
   from (
     select participations.*, row_number() over (partition by guid order by id) as number from take_over.participations
     where ${isCopiedSql('participations', 'participations.id')}
   ) as source join take_over.map_people as map on map.id = source.author_id
   join take_over.posts as parent on parent.id = source.target_id`,
]

const tags: readonly string[] = [
  `create unlogged table take_over.map_tags as
   select id, lower(name) as name, first_value(id) over (partition by lower(name) order by id) as new_id
   from take_over.tags where name <> ''`,
  'create unique index on take_over.map_tags (id)',
  insertSkippedRowsSql(
    'tags',
    `select source.id, case when map.id is null then 'D08' when map.new_id <> map.id then 'D09' end as code
     from take_over.tags as source left join take_over.map_tags as map on map.id = source.id`,
  ),
  `insert into tags (id, name) overriding system value select id, name from take_over.map_tags where new_id = id`,
  insertSkippedRowsSql(
    'taggings',
    `select source.id, case
       when coalesce(source.context, 'tags') <> 'tags' or source.taggable_type not in ('Post', 'Comment', 'Profile') then 'D15'
       when map.new_id is null then 'D07'
       when source.taggable_type = 'Profile' then 'profile'
       when coalesce(posts.id, comments.id) is null then 'D07'
       when row_number() over (
         partition by source.taggable_type, source.taggable_id, map.new_id order by source.id
       ) > 1 then 'D09'
     end as code
     from take_over.taggings as source
     left join take_over.map_tags as map on map.id = source.tag_id
     left join posts on posts.id = source.taggable_id and source.taggable_type = 'Post'
     left join comments on comments.id = source.taggable_id and source.taggable_type = 'Comment'`,
  ),
  `insert into taggings (id, tag_id, post_id, comment_id, created_at) overriding system value
   select source.id, map.new_id, posts.id, comments.id, coalesce(posts.created_at, parents.created_at)
   from take_over.taggings as source
   join take_over.map_tags as map on map.id = source.tag_id
   left join posts on posts.id = source.taggable_id and source.taggable_type = 'Post'
   left join comments on comments.id = source.taggable_id and source.taggable_type = 'Comment'
   left join posts as parents on parents.id = comments.post_id
   where ${isCopiedSql('taggings', 'source.id')}`,
  `update tags set public = true from (
     select distinct taggings.tag_id from taggings left join comments on comments.id = taggings.comment_id
     join posts on posts.id = coalesce(taggings.post_id, comments.post_id) and posts.public
   ) as used where used.tag_id = tags.id`,
  insertSkippedRowsSql(
    'tag_followings',
    `select source.id, case
       when users.id is null or map.new_id is null then 'D07'
       when row_number() over (partition by source.user_id, map.new_id order by source.id) > 1 then 'D09'
     end as code
     from take_over.tag_followings as source left join users on users.id = source.user_id
     left join take_over.map_tags as map on map.id = source.tag_id`,
  ),
  `insert into tag_followings (user_id, tag_id, created_at)
   select source.user_id, map.new_id, ${timeSql('source.created_at', 'source.updated_at')}
   from take_over.tag_followings as source join take_over.map_tags as map on map.id = source.tag_id
   where ${isCopiedSql('tag_followings', 'source.id')}`,
]

const mentions: readonly string[] = [
  insertSkippedPairsSql('mentions', { target: 'mentions_container', person: 'person_id' }),
  `insert into mentions (id, person_id, post_id, comment_id, created_at) overriding system value
   select source.id, map.new_id, posts.id, comments.id, posts.created_at
   from take_over.mentions as source
   left join posts on posts.id = source.mentions_container_id and source.mentions_container_type = 'Post'
   left join comments on comments.id = source.mentions_container_id and source.mentions_container_type = 'Comment'
   join take_over.map_people as map on map.id = source.person_id
   where ${isCopiedSql('mentions', 'source.id')}`,
]

/** Comments, likes, votes with their signatures, participations, tags and mentions. */
export const interactionStatements: readonly string[] = [
  ...comments,
  ...likes,
  ...votes,
  skippedSignatures('comment_signatures', 'comment_id', 'comments'),
  skippedSignatures('like_signatures', 'like_id', 'likes'),
  skippedSignatures('poll_participation_signatures', 'poll_participation_id', 'poll_participations'),
  ...participations,
  ...tags,
  ...mentions,
]
