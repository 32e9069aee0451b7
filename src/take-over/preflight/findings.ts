import type { Source } from '../source/source.js'

/** Rows of the source that the copy must correct or leave out. Names ids and guids only, no texts. */
export interface InvalidRowFinding {
  readonly code: string
  readonly table: string
  readonly count: number
  readonly examples: readonly string[]
}

/** A check that took too long. */
export interface UncheckedTable {
  readonly code: string
  readonly table: string
}

interface InvalidRows {
  readonly findings: readonly InvalidRowFinding[]
  readonly notChecked: readonly UncheckedTable[]
}

interface Check {
  readonly code: string
  readonly table: string
  /** Columns, as table.column, without which the check has no meaning in this release. */
  readonly needs?: readonly string[]
  /** Selects a column `example`; $1 is the host of the pod. */
  readonly select: string
}

const EXAMPLES = 20
/** Pattern of a guid without a count, which would make it slow. */
const GUID_SQL = `'^[0-9A-Za-z_@.:-]*[0-9A-Za-z]$'`
const HANDLE_SQL = `'^[[:alnum:]._-]+@([[:alnum:].-]+|\\[[0-9a-f:.]+\\])(:[0-9]+)?$'`

/** Columns of the source that are ids of other rows, which no foreign key guards. */
const REFERENCES: readonly (readonly [table: string, column: string, target: string, condition?: string])[] = [
  ['contacts', 'user_id', 'users'],
  ['contacts', 'person_id', 'people'],
  ['aspects', 'user_id', 'users'],
  ['aspect_memberships', 'aspect_id', 'aspects'],
  ['aspect_memberships', 'contact_id', 'contacts'],
  ['blocks', 'user_id', 'users'],
  ['blocks', 'person_id', 'people'],
  ['roles', 'person_id', 'people'],
  ['profiles', 'person_id', 'people'],
  ['user_preferences', 'user_id', 'users'],
  ['account_deletions', 'person_id', 'people'],
  ['posts', 'author_id', 'people'],
  ['photos', 'author_id', 'people'],
  ['aspect_visibilities', 'aspect_id', 'aspects'],
  ['aspect_visibilities', 'shareable_id', 'posts', `shareable_type = 'Post'`],
  ['aspect_visibilities', 'shareable_id', 'photos', `shareable_type = 'Photo'`],
  ['share_visibilities', 'user_id', 'users'],
  ['share_visibilities', 'shareable_id', 'posts', `shareable_type = 'Post'`],
  ['share_visibilities', 'shareable_id', 'photos', `shareable_type = 'Photo'`],
  ['locations', 'status_message_id', 'posts'],
  ['polls', 'status_message_id', 'posts'],
  ['poll_answers', 'poll_id', 'polls'],
  ['poll_participations', 'poll_id', 'polls'],
  ['poll_participations', 'poll_answer_id', 'poll_answers'],
  ['poll_participations', 'author_id', 'people'],
  ['comments', 'commentable_id', 'posts', `commentable_type = 'Post'`],
  ['comments', 'author_id', 'people'],
  ['likes', 'target_id', 'posts', `target_type = 'Post'`],
  ['likes', 'target_id', 'comments', `target_type = 'Comment'`],
  ['likes', 'author_id', 'people'],
  ['participations', 'target_id', 'posts', `target_type = 'Post'`],
  ['participations', 'author_id', 'people'],
  ['taggings', 'tag_id', 'tags'],
  ['taggings', 'taggable_id', 'posts', `taggable_type = 'Post'`],
  ['taggings', 'taggable_id', 'comments', `taggable_type = 'Comment'`],
  ['tag_followings', 'tag_id', 'tags'],
  ['tag_followings', 'user_id', 'users'],
  ['mentions', 'mentions_container_id', 'posts', `mentions_container_type = 'Post'`],
  ['mentions', 'mentions_container_id', 'comments', `mentions_container_type = 'Comment'`],
  ['mentions', 'person_id', 'people'],
  ['conversations', 'author_id', 'people'],
  ['conversation_visibilities', 'conversation_id', 'conversations'],
  ['conversation_visibilities', 'person_id', 'people'],
  ['messages', 'conversation_id', 'conversations'],
  ['messages', 'author_id', 'people'],
  ['notifications', 'recipient_id', 'users'],
  ['notification_actors', 'notification_id', 'notifications'],
  ['notification_actors', 'person_id', 'people'],
  ['reports', 'user_id', 'users'],
  ['reports', 'item_id', 'posts', `item_type = 'Post'`],
  ['reports', 'item_id', 'comments', `item_type = 'Comment'`],
  ['authorizations', 'user_id', 'users'],
  ['authorizations', 'o_auth_application_id', 'o_auth_applications'],
  ['o_auth_access_tokens', 'authorization_id', 'authorizations'],
]

const WITH_GUID = [
  'people',
  'posts',
  'photos',
  'polls',
  'poll_answers',
  'poll_participations',
  'comments',
  'likes',
  'participations',
  'conversations',
  'messages',
  'notifications',
] as const

const WITH_TIMES = [
  'users',
  'people',
  'profiles',
  'contacts',
  'aspects',
  'posts',
  'photos',
  'polls',
  'poll_participations',
  'comments',
  'likes',
  'participations',
  'conversations',
  'messages',
  'notifications',
  'reports',
] as const

const selectDuplicates = (table: string, columns: string, condition = 'true'): Check => ({
  code: 'D09',
  table,
  select: `select id::text as example from (
      select id, row_number() over (partition by ${columns} order by id) as number from ${table} where ${condition}
    ) as numbered where number > 1`,
})

const CHECKS: readonly Check[] = [
  {
    code: 'D01',
    table: 'people',
    select: `select string_agg(id::text, '=' order by id) as example from people group by lower(diaspora_handle) having count(*) > 1`,
  },
  {
    code: 'D02',
    table: 'people',
    select: `select id::text as example from people where lower(diaspora_handle) !~ ${HANDLE_SQL} or length(diaspora_handle) > 255`,
  },
  {
    code: 'D03',
    table: 'people',
    select: `select id::text as example from people where not exists (select from profiles where person_id = people.id)`,
  },
  {
    code: 'D04',
    table: 'people',
    select: `select person_id::text as example from profiles group by person_id having count(*) > 1`,
  },
  {
    code: 'D05',
    table: 'people',
    select: `select id::text as example from people where owner_id is null and pod_id is null
      or owner_id is not null and not exists (select from users where users.id = owner_id)
      or owner_id is null and pod_id is not null and split_part(lower(diaspora_handle), '@', 2) = $1`,
  },
  {
    code: 'D06',
    table: 'pods',
    select: `select id::text as example from (
        select id, host, lower(host) in ($1, 'www.' || $1) as is_own, row_number() over (
          partition by lower(host), case when coalesce(port, -1) in (-1, 0, 80, 443) then 443 else port end order by id
        ) as number from pods
      ) as numbered where number > 1 or coalesce(host, '') = '' or is_own`,
  },
  ...REFERENCES.map(
    ([table, column, target, condition = 'true']): Check => ({
      code: 'D07',
      table,
      needs: [`${table}.${column}`, `${target}.id`],
      select: `select ${table}.id::text as example from ${table}
        where ${condition} and not exists (select from ${target} as target where target.id = ${table}.${column})`,
    }),
  ),
  ...WITH_GUID.map(
    (table): Check => ({
      code: 'D08',
      table,
      needs: [`${table}.guid`],
      select: `select id::text as example from ${table} where guid is null or length(guid) not between 16 and 255 or guid !~ ${GUID_SQL}`,
    }),
  ),
  selectDuplicates('aspects', 'user_id, lower(name)'),
  selectDuplicates('users', 'lower(email)', `email <> ''`),
  selectDuplicates('authorizations', 'user_id, o_auth_application_id'),
  selectDuplicates('poll_participations', 'poll_id, author_id'),
  selectDuplicates('tags', 'lower(name)'),
  selectDuplicates('locations', 'status_message_id'),
  selectDuplicates('notifications', 'target_id, recipient_id', `target_type = 'Mention'`),
  {
    code: 'D11',
    table: 'conversations',
    select: `select id::text as example from conversations where coalesce(subject, '') !~ '[^[:space:]]' or length(subject) > 255`,
  },
  ...['posts', 'comments', 'messages'].map(
    (table): Check => ({
      code: 'D11',
      table,
      select: `select id::text as example from ${table} where length(text) > 65535`,
    }),
  ),
  {
    code: 'D11',
    table: 'profiles',
    select: `select id::text as example from profiles where length(first_name) > 32 or length(last_name) > 32
      or length(bio) > 65535 or length(location) > 255 or length(gender) > 255`,
  },
  ...WITH_TIMES.map(
    (table): Check => ({
      code: 'D12',
      table,
      select: `select id::text as example from ${table}
        where created_at is null or created_at < timestamp '2010-01-01 00:00:00' or created_at > localtimestamp + interval '1 day'`,
    }),
  ),
  {
    code: 'D13',
    table: 'contacts',
    select: `select contacts.id::text as example from contacts join people on people.id = person_id
      where not sharing and not receiving or people.owner_id = contacts.user_id or people.closed_account`,
  },
  {
    code: 'D13',
    table: 'blocks',
    select: `select blocks.id::text as example from blocks join people on people.id = person_id where people.owner_id = blocks.user_id`,
  },
  {
    code: 'D14',
    table: 'notifications',
    select: `select id::text as example from notifications where not exists (
        select from notification_actors where notification_id = notifications.id
      ) or case target_type
        when 'Post' then not exists (select from posts where posts.id = target_id)
        when 'Comment' then not exists (select from comments where comments.id = target_id)
        when 'Mention' then not exists (select from mentions where mentions.id = target_id)
        when 'Person' then not exists (select from people where people.id = target_id)
        else true
      end or coalesce(target_type, '') <> case type
        when 'Notifications::CommentOnPost' then 'Post' when 'Notifications::AlsoCommented' then 'Post'
        when 'Notifications::Liked' then 'Post' when 'Notifications::Reshared' then 'Post'
        when 'Notifications::LikedComment' then 'Comment' when 'Notifications::MentionedInPost' then 'Mention'
        when 'Notifications::Mentioned' then 'Mention' when 'Notifications::MentionedInComment' then 'Mention'
        when 'Notifications::StartedSharing' then 'Person' when 'Notifications::ContactsBirthday' then 'Person'
        else 'unknown'
      end`,
  },
  {
    code: 'D15',
    table: 'posts',
    select: `select posts.id::text as example from posts left join posts as root on root.guid = posts.root_guid
      where posts.type not in ('StatusMessage', 'Reshare')
        or posts.type = 'Reshare' and (not posts.public or root.id is null or not root.public and root.type <> 'Reshare')`,
  },
  {
    code: 'D15',
    table: 'comments',
    select: `select id::text as example from comments where commentable_type <> 'Post'`,
  },
  {
    code: 'D15',
    table: 'likes',
    select: `select id::text as example from likes where target_type not in ('Post', 'Comment')`,
  },
  ...(['comment', 'like', 'poll_participation'] as const).map(
    (name): Check => ({
      code: 'D16',
      table: `${name}_signatures`,
      select: `select ${name}_id::text as example from ${name}_signatures where coalesce(author_signature, '') = ''`,
    }),
  ),
  {
    code: 'D17',
    table: 'photos',
    select: `select photos.id::text as example from photos left join posts on posts.guid = status_message_guid
      where remote_photo_path is null or coalesce(remote_photo_name, '') = '' or posts.public and not photos.public`,
  },
  {
    code: 'D19',
    table: 'account_deletions',
    select: `select id::text as example from account_deletions where completed_at is null`,
  },
  {
    code: 'D20',
    table: 'people',
    select: `select id::text as example from people
      where owner_id is not null and split_part(lower(diaspora_handle), '@', 2) <> $1 and closed_account is not true`,
  },
  {
    code: 'D43',
    table: 'posts',
    select: `select posts.id::text as example from posts
      left join (select commentable_id, count(*) as count from comments where commentable_type = 'Post' group by 1) as commented
        on commented.commentable_id = posts.id
      left join (select target_id, count(*) as count from likes where target_type = 'Post' and positive is not false group by 1) as liked
        on liked.target_id = posts.id
      left join (select root_guid, count(*) as count from posts where type = 'Reshare' and root_guid is not null group by 1) as reshared
        on reshared.root_guid = posts.guid
      where coalesce(posts.comments_count, 0) <> coalesce(commented.count, 0)
        or coalesce(posts.likes_count, 0) <> coalesce(liked.count, 0)
        or coalesce(posts.reshares_count, 0) <> coalesce(reshared.count, 0)`,
  },
  {
    code: 'D43',
    table: 'comments',
    select: `select comments.id::text as example from comments
      left join (select target_id, count(*) as count from likes where target_type = 'Comment' and positive is not false group by 1) as liked
        on liked.target_id = comments.id
      where coalesce(comments.likes_count, 0) <> coalesce(liked.count, 0)`,
  },
  {
    code: 'D43',
    table: 'poll_answers',
    select: `select poll_answers.id::text as example from poll_answers
      left join (select poll_answer_id, count(*) as count from poll_participations group by 1) as voted
        on voted.poll_answer_id = poll_answers.id
      where coalesce(poll_answers.vote_count, 0) <> coalesce(voted.count, 0)`,
  },
]

const TEXTS = [
  ...['posts', 'comments', 'messages'].map((table) => ({ table, columns: ['text'] })),
  { table: 'profiles', columns: ['first_name', 'last_name', 'bio', 'location'] },
  { table: 'conversations', columns: ['subject'] },
]

/** Bytes of UTF-8, as characters of a database without encoding. */
const UTF8_SQL = [
  String.raw`'^([\x01-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf][\x80-\xbf]|`,
  String.raw`\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf][\x80-\xbf]|[\xf1-\xf3][\x80-\xbf][\x80-\xbf][\x80-\xbf]|`,
  String.raw`\xf4[\x80-\x8f][\x80-\xbf][\x80-\xbf])*$'`,
].join('')

/** Texts that PostgreSQL with UTF-8 cannot have. */
async function listTextChecks(source: Source): Promise<readonly Check[]> {
  if ((await source.encoding()) === 'UTF8') return []
  const isInvalid = (column: string) =>
    source.kind === 'mysql' ? `locate(char(0), ${column}) > 0` : `${column} !~ ${UTF8_SQL}`
  return TEXTS.map(({ table, columns }) => ({
    code: 'D10',
    table,
    select: `select id::text as example from ${table} where ${columns.map(isInvalid).join(' or ')}`,
  }))
}

/** Counts the rows of each kind in the source. */
export async function findInvalidRows(source: Source, host: string): Promise<InvalidRows> {
  const columns = new Set(
    (await source.listTables()).flatMap(({ name, columns: names }) => names.map((column) => `${name}.${column}`)),
  )
  const findings: InvalidRowFinding[] = []
  const notChecked: UncheckedTable[] = []
  for (const { code, table, needs = [], select } of [...CHECKS, ...(await listTextChecks(source))]) {
    if (![`${table}.${keyOf(table)}`, ...needs].every((column) => columns.has(column))) continue
    const row = await countInvalidRows(source, select, host)
    if (row === undefined) notChecked.push({ code, table })
    else if (row.count > 0) findings.push({ code, table, ...row })
  }
  return { findings, notChecked }
}

/** Undefined: the statement took too long. */
async function countInvalidRows(
  source: Source,
  select: string,
  host: string,
): Promise<Pick<InvalidRowFinding, 'count' | 'examples'> | undefined> {
  try {
    return await source.countExamples(select, select.includes('$1') ? [host] : [], EXAMPLES)
  } catch (error) {
    if (source.isTimeout(error)) return undefined
    throw error
  }
}

function keyOf(table: string): string {
  return table.endsWith('_signatures') ? table.replace(/signatures$/, 'id') : 'id'
}

/** One finding for each code and table. */
export function mergeFindings(findings: readonly InvalidRowFinding[]): readonly InvalidRowFinding[] {
  const findingsByName = new Map<string, InvalidRowFinding>()
  for (const finding of findings) {
    const name = `${finding.code} ${finding.table}`
    const mergedFinding = findingsByName.get(name)
    findingsByName.set(
      name,
      mergedFinding === undefined
        ? finding
        : {
            ...finding,
            count: mergedFinding.count + finding.count,
            examples: [...mergedFinding.examples, ...finding.examples].slice(0, EXAMPLES),
          },
    )
  }
  return [...findingsByName.values()].sort((one, other) => (one.code < other.code ? -1 : one.code > other.code ? 1 : 0))
}
