/** A table of the target, and the rows of the staging tables that it must have. Both sides select \`id\` and \`content\`. */
export interface Comparison {
  readonly name: string
  readonly expected: string
  readonly actual: string
  /** The table of the source, if only a sample of its rows is compared. */
  readonly sampled?: string
}

/** Times after the copy are those of authors whose clock is fast. They became the time of the copy. */
const COPIED_AT_SQL = `(select date_trunc('milliseconds', max(copied_at)) from take_over.copied_blocks)`
export const expectedTime = (table: string, otherwise = 'null') => `to_char(least(
  date_trunc('milliseconds', coalesce(${table}.created_at, ${table}.updated_at, ${otherwise}, timestamp '2010-01-01')),
  ${COPIED_AT_SQL} at time zone 'UTC'
), 'YYYY-MM-DD HH24:MI:SS.MS')`
export const actualTime = (column: string) =>
  `to_char(least(${column}, ${COPIED_AT_SQL}) at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')`
const parentTime = (table: string, id: string) =>
  `(select coalesce(created_at, updated_at) from take_over.${table} as parent where parent.id = ${id})`
const TARGET_TIME_SQL = `case target_type when 'Post' then ${parentTime('posts', 'target_id')} else ${parentTime('comments', 'target_id')} end`
const toMilliseconds = (column: string) => `to_char(date_trunc('milliseconds', ${column}), 'YYYY-MM-DD HH24:MI:SS.MS')`
const utc = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS')`
export const content = (...columns: readonly string[]) => `md5(row(${columns.join(', ')})::text) as content`
export const isNotSkipped = (table: string, id = `${table}.id`) =>
  `not exists (select from take_over.skipped_rows where skipped_rows.source = '${table}' and skipped_rows.id = ${id})`
/**
 * The guid of a row of the source here: one that the network accepts must stay, another one is replaced by a part of a hash. The
 * patterns have no count and the collation of bytes: with `{15,254}` the comparison of a table takes ten times as long.
 */
export const expectedGuid = (table: string) => `case
  when octet_length(${table}.guid) between 16 and 255 and ${table}.guid collate "C" !~ '[^0-9A-Za-z_@.:-]'
    and right(${table}.guid, 1) collate "C" ~ '[0-9A-Za-z]' then ${table}.guid
  else substr(encode(sha256(convert_to(concat('take-over ${table} ', ${table}.id, ' ', ${table}.guid), 'UTF8')), 'hex'), 1, 32)
end`
/** The person of the source by the address, whatever its id here. */
export const author = (column: string) =>
  `(select lower(diaspora_handle) from take_over.people where people.id = ${column})`
export const address = (column: string) => `(select address from people where people.id = ${column})`

export function comparisonOf(name: string, expected: string, actual: string): Comparison {
  return { name, expected, actual }
}

/** The name of an aspect that no other aspect of the source has in this or another case; those get numbers. */
const ASPECT_NAME_SQL = `case when aspects.id not in (
  select one.id from take_over.aspects as one join take_over.aspects as other
    on other.user_id = one.user_id and lower(other.name) = lower(one.name) and other.id <> one.id
) then name end`
const NAMES = [`coalesce(first_name, '')`, `coalesce(last_name, '')`]
const DETAILS = [`coalesce(gender, '')`, 'nsfw is true', 'public_details is true']

/** All rows of these tables are compared. */
export const COMPARISONS: readonly Comparison[] = [
  comparisonOf(
    'users',
    `select users.id, ${content(
      'lower(username)',
      'disable_mail is true',
      `exists (
       select from take_over.people where owner_id = users.id and closed_account and not exists (
         select from take_over.account_deletions where person_id = people.id and completed_at is null))`,
    )}
     from take_over.users where ${isNotSkipped('users')}`,
    `select users.id, ${content('username', 'not mail_enabled', 'closed_at is not null')} from users`,
  ),
  comparisonOf(
    'people',
    `select people.id, ${content(expectedGuid('people'), 'lower(diaspora_handle)', 'serialized_public_key')}
     from take_over.people where ${isNotSkipped('people')}`,
    `select people.id, ${content('people.guid', 'address', 'public_key')} from people`,
  ),
  comparisonOf(
    'profiles',
    `select person_id as id, ${content(...NAMES, `coalesce(bio, '')`, `coalesce(location, '')`, ...DETAILS, `case when birthday between date '0001-01-01' and date '9999-12-31' then to_char(birthday, 'YYYY-MM-DD') end`)}
     from take_over.profiles where ${isNotSkipped('profiles')}`,
    `select person_id as id, ${content(...NAMES, 'bio', 'location', ...DETAILS, 'birthday')}
     from profiles where exists (select from take_over.profiles as source where source.person_id = profiles.person_id)`,
  ),
  comparisonOf(
    'contacts',
    `select contacts.id, ${content('user_id', author('person_id'), 'sharing is true', `receiving is true or exists (select from take_over.aspect_memberships where contact_id = contacts.id)`)}
     from take_over.contacts where ${isNotSkipped('contacts')}`,
    `select contacts.id, ${content('user_id', address('person_id'), 'sharing', 'receiving')} from contacts`,
  ),
  comparisonOf(
    'aspects',
    `select aspects.id, ${content('user_id', 'post_default is true', ASPECT_NAME_SQL)} from take_over.aspects where ${isNotSkipped('aspects')}`,
    `select aspects.id, ${content('user_id', 'post_default', ASPECT_NAME_SQL)} from aspects`,
  ),
  comparisonOf(
    'aspect_memberships',
    `select aspect_id * 4294967296 + contact_id as id, '' as content from take_over.aspect_memberships where ${isNotSkipped('aspect_memberships')}`,
    `select aspect_id * 4294967296 + contact_id as id, '' as content from aspect_memberships`,
  ),
  comparisonOf(
    'posts',
    `select posts.id, ${content(expectedGuid('posts'), author('author_id'), `public or type = 'Reshare'`, `case when type = 'Reshare' then '' else coalesce(text, '') end`, `coalesce(provider_display_name, '')`, expectedTime('posts'))}
     from take_over.posts where ${isNotSkipped('posts')}`,
    `select posts.id, ${content('posts.guid', address('author_id'), 'public', 'text', `coalesce(provider_display_name, '')`, actualTime('posts.created_at'))} from posts`,
  ),
  comparisonOf(
    'photos',
    `select photos.id, ${content(expectedGuid('photos'), author('author_id'), 'pending', `coalesce(text, '')`, 'height', 'width', `coalesce(nullif(remote_photo_name, ''), nullif(processed_image, ''), unprocessed_image, '')`)}
     from take_over.photos where ${isNotSkipped('photos')}`,
    `select photos.id, ${content('photos.guid', address('author_id'), 'pending', `coalesce(text, '')`, 'height', 'width', 'name::varchar')} from photos`,
  ),
  comparisonOf(
    'comments',
    `select comments.id, ${content(expectedGuid('comments'), author('author_id'), 'commentable_id', 'text', expectedTime('comments', parentTime('posts', 'commentable_id')))}
     from take_over.comments where ${isNotSkipped('comments')}`,
    `select comments.id, ${content('comments.guid', address('author_id'), 'post_id', 'text', actualTime('comments.created_at'))} from comments`,
  ),
  comparisonOf(
    'likes',
    `select likes.id, ${content(expectedGuid('likes'), author('author_id'), 'target_type', 'target_id', 'positive is not false', expectedTime('likes', TARGET_TIME_SQL))}
     from take_over.likes where ${isNotSkipped('likes')}`,
    `select likes.id, ${content('likes.guid', address('author_id'), `case when post_id is null then 'Comment' else 'Post' end::varchar`, 'coalesce(post_id, comment_id)', 'positive', actualTime('likes.created_at'))} from likes`,
  ),
  comparisonOf(
    'poll_participations',
    `select poll_participations.id, ${content(author('author_id'), 'poll_answer_id')} from take_over.poll_participations where ${isNotSkipped('poll_participations')}`,
    `select poll_participations.id, ${content(address('author_id'), 'poll_answer_id')} from poll_participations`,
  ),
  comparisonOf(
    'messages',
    `select messages.id, ${content(expectedGuid('messages'), author('author_id'), 'conversation_id', 'text', expectedTime('messages', parentTime('conversations', 'conversation_id')))}
     from take_over.messages where ${isNotSkipped('messages')}`,
    `select messages.id, ${content('messages.guid', address('author_id'), 'conversation_id', 'text', actualTime('messages.created_at'))} from messages`,
  ),
  comparisonOf(
    'conversation_visibilities',
    `select source.conversation_id || ' ' || lower(diaspora_handle) as id, greatest(unread, 0)::text as content
     from take_over.conversation_visibilities as source join take_over.people on people.id = source.person_id
     where ${isNotSkipped('conversation_visibilities', 'source.id')}`,
    `select conversation_id || ' ' || ${address('person_id')} as id, unread::text as content from conversation_visibilities`,
  ),
  ...(['comment', 'like', 'poll_participation'] as const).map((name) =>
    comparisonOf(
      `${name}_signatures`,
      `select ${name}_id as id, regexp_replace(author_signature, '\\s', '', 'g') as content
       from take_over.${name}_signatures join take_over.signature_orders as orders on orders.id = signature_order_id
       where ${isNotSkipped(`${name}_signatures`, `${name}_id`)}`,
      `select id, author_signature as content from ${name}s
       where exists (select from take_over.${name}_signatures as source where source.${name}_id = ${name}s.id)`,
    ),
  ),
  comparisonOf(
    'post_visibilities',
    `select user_id * 4294967296 + shareable_id as id, '' as content from take_over.share_visibilities
     where shareable_type = 'Post' and ${isNotSkipped('share_visibilities')}`,
    `select user_id * 4294967296 + post_id as id, '' as content from post_visibilities`,
  ),
  comparisonOf(
    'photo_visibilities',
    `select user_id * 4294967296 + shareable_id as id, '' as content from take_over.share_visibilities
     where shareable_type = 'Photo' and ${isNotSkipped('share_visibilities')}`,
    `select user_id * 4294967296 + photo_id as id, '' as content from photo_visibilities`,
  ),
  comparisonOf(
    'notifications',
    `select notifications.id, ${content(expectedGuid('notifications'), 'recipient_id', 'unread')} from take_over.notifications
     where guid is not null and ${isNotSkipped('notifications')}`,
    `select notifications.id, ${content('notifications.guid', 'user_id', 'not read')} from notifications
     where exists (select from take_over.notifications as source where source.id = notifications.id and source.guid is not null)`,
  ),
  comparisonOf(
    'access_tokens',
    `select o_auth_access_tokens.id, ${content('token', toMilliseconds('expires_at'))} from take_over.o_auth_access_tokens where ${isNotSkipped('o_auth_access_tokens')}`,
    `select access_tokens.id, ${content('token_hash', utc('expires_at'))} from access_tokens`,
  ),
  comparisonOf(
    'refresh_tokens',
    `select authorizations.id, ${content('refresh_token')} from take_over.authorizations where refresh_token is not null and ${isNotSkipped('authorizations')}`,
    `select authorization_id as id, ${content('token_hash')} from refresh_tokens`,
  ),
]

/** Signatures of local people are made when they are first needed. */
const keptSignatures = (name: string) =>
  `select count(*) from ${name}s as kept join take_over.${name}_signatures as source on source.${name}_id = kept.id
   where kept.author_signature is not null`

/** How many rows of each table of the source are in the target. With those that were merged or dropped, they are all. */
export const KEPT_ROWS: Readonly<Record<string, string>> = {
  pods: 'select count(*) from pods join take_over.pods as source using (id)',
  users: 'select count(*) from users',
  people: 'select count(*) from people',
  profiles:
    'select count(*) from profiles join (select distinct person_id from take_over.profiles) as source using (person_id)',
  account_migrations: 'select count(*) from account_migrations',
  contacts: 'select count(*) from contacts',
  aspects: 'select count(*) from aspects',
  aspect_memberships: 'select count(*) from aspect_memberships',
  blocks: 'select count(*) from blocks',
  user_preferences: 'select count(*) from mail_preferences',
  posts: 'select count(*) from posts',
  photos: 'select count(*) from photos',
  aspect_visibilities: 'select (select count(*) from post_aspects) + (select count(*) from photo_aspects) as count',
  share_visibilities:
    'select (select count(*) from post_visibilities) + (select count(*) from photo_visibilities) as count',
  locations: 'select count(*) from locations',
  polls: 'select count(*) from polls',
  poll_answers: 'select count(*) from poll_answers',
  poll_participations: 'select count(*) from poll_participations',
  comments: 'select count(*) from comments',
  likes: 'select count(*) from likes',
  comment_signatures: keptSignatures('comment'),
  like_signatures: keptSignatures('like'),
  poll_participation_signatures: keptSignatures('poll_participation'),
  participations: 'select count(*) from participations',
  tags: 'select count(*) from tags',
  taggings: 'select count(*) from taggings',
  tag_followings: 'select count(*) from tag_followings',
  mentions: 'select count(*) from mentions',
  conversations: 'select count(*) from conversations',
  conversation_visibilities: 'select count(*) from conversation_visibilities',
  messages: 'select count(*) from messages',
  notifications: 'select count(*) from notifications',
  notification_actors: 'select count(*) from notification_actors',
  reports: 'select count(*) from reports',
  o_auth_applications: 'select count(*) from clients',
  authorizations: 'select count(*) from authorizations',
  o_auth_access_tokens: 'select count(*) from access_tokens',
}
