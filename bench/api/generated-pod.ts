import type { Knex } from 'knex'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'

/**
 * The size of a generated pod. A person has the same number of rows on pods of every size, so that the same request has a response
 * of the same length. Only one author, one post and one reader have more rows on a larger pod.
 */
export interface GeneratedPod {
  readonly posts: number
  readonly people: number
  /** Number of local users. They are the first people; a user and its person have the same id. */
  readonly users: number
  readonly conversations: number
  /** Person who has written one of twenty posts. */
  readonly prolificAuthor: number
  /** Post with one of a hundred comments. */
  readonly hotPost: number
  /** User who can see every private post, is notified of one in twenty posts, and shares with one in five people. */
  readonly busyUser: number
  /** Tag of one in twenty posts. Half of the other posts share a tag with a hundred posts. */
  readonly hotTag: number
  readonly tags: number
}

/** Posts of the smallest generated pod. */
export const MIN_POSTS = 10_000
const POSTS_PER_PERSON = 100
const POSTS_PER_USER = 1_000
const POSTS_PER_CONVERSATION = 10

export function planPod(size: number): GeneratedPod {
  const posts = Math.max(1, Math.round(size / MIN_POSTS)) * MIN_POSTS
  const people = posts / POSTS_PER_PERSON
  return {
    posts,
    people,
    users: posts / POSTS_PER_USER,
    conversations: posts / POSTS_PER_CONVERSATION,
    prolificAuthor: people + 1,
    hotPost: 9,
    busyUser: 1,
    hotTag: 1,
    tags: posts / 100,
  }
}

/** Guid of the row with this number. Ascending guids are inserted fast. */
export function guidOf(kind: 'person' | 'post' | 'conversation', number: number): string {
  return `${number.toString(16).padStart(8, '0')}${kindMarks[kind]}`
}

const kindMarks = {
  person: 'a'.repeat(24),
  post: 'b'.repeat(24),
  conversation: 'c'.repeat(24),
  message: 'd'.repeat(24),
  comment: 'e'.repeat(24),
  like: 'f'.repeat(24),
  other: '0'.repeat(24),
} as const

/** Fills an empty database with the rows of the plan. */
export async function generatePod(url: string, plan: GeneratedPod): Promise<void> {
  const db = openDatabase({
    ...WORKER_DATABASE_LIMITS,
    url,
    applicationName: 'bench',
    statementTimeoutMs: 0,
    queryTimeoutMs: 0,
  })
  try {
    await db.raw('alter system set autovacuum = off')
    await db.raw('select pg_reload_conf()')
    for (const statement of statementsFor(plan)) await db.transaction((transaction) => fill(transaction, statement))
    await db.raw(resetSequences)
    await db.raw('vacuum analyze')
    await db.raw('alter system reset autovacuum')
    await db.raw('select pg_reload_conf()')
    await db.raw('checkpoint')
  } finally {
    await db.destroy()
  }
}

/** Moves every identity sequence behind the inserted ids. */
const resetSequences = `
  do $$
  declare
    key record;
  begin
    for key in select table_name, column_name from information_schema.columns where is_identity = 'YES' loop
      execute format(
        'select setval(pg_get_serial_sequence(%1$L, %2$L), coalesce(max(%2$I), 0) + 1) from %1$I',
        key.table_name, key.column_name
      );
    end loop;
  end
  $$`

async function fill(transaction: Knex.Transaction, statement: string): Promise<void> {
  // Skips the checks of fifteen million foreign keys, which take longer than the inserts. The plan makes the references valid.
  await transaction.raw('set local session_replication_role = replica')
  await transaction.raw(statement)
}

function statementsFor({
  posts,
  people,
  users,
  conversations,
  prolificAuthor,
  hotPost,
  busyUser,
  hotTag,
  tags,
}: GeneratedPod): string[] {
  const guid = (kind: keyof typeof kindMarks, number = 'i') => `lpad(to_hex(${number}), 8, '0') || '${kindMarks[kind]}'`
  const series = (count: number) => `generate_series(1, ${count}) as i`
  const now = new Date().toISOString()
  /** Creation time of a row: one second per post, and the last post is new. A number always has the same time. */
  const at = (number: string, of = posts) =>
    `timestamptz '${now}' - make_interval(secs => ${posts}.0 * (${of} - (${number})) / ${of})`
  const author = `case when i % 20 = 0 then ${prolificAuthor} else 1 + (i / 10) % ${people} end`
  const person = (number: string) => `1 + (${number}) % ${people}`
  const user = (number: string) => `1 + (${number}) % ${users}`
  const words = `'The quick brown fox jumps over the lazy dog, and **'`

  return [
    `insert into people (id, guid, address, pod_id, public_key, name)
     overriding system value
     select i, ${guid('person')}, 'person' || i || case when i <= ${users} then '@pod.example' else '@other.example' end,
       case when i > ${users} then 1 end, 'none', 'Person ' || i
     from ${series(people + 1)}`,
    `insert into pods (id, host) overriding system value values (1, 'other.example')`,
    `insert into profiles (person_id, first_name) select i, 'Person ' || i from ${series(people + 1)}`,
    `insert into users (id, person_id, username) overriding system value select i, i, 'person' || i from ${series(users)}`,

    // Of ten posts of a person, one is a reshare and one is private; others have photos, a poll or a mention.
    `insert into posts (
       id, guid, author_id, type, public, text, root_id, comments_count, likes_count, created_at, interacted_at
     )
     overriding system value
     select i, ${guid('post')}, ${author}, case when i % 10 = 3 and i > 20 then 'Reshare' else 'StatusMessage' end,
       i % 10 <> 7, case when i % 10 = 3 and i > 20 then '' else ${words} || i || '** goes home.' end,
       case when i % 10 = 3 and i > 20 then i - 11 end,
       5 - (i % 20 = 1)::int + case when i = ${hotPost} then ${posts / 20} else 0 end, 4, ${at('i')}, ${at('i')}
     from ${series(posts)}`,
    `insert into post_visibilities (user_id, post_id, author_id, created_at)
     select case when k < 3 then ${user('i / 10 + k')} else ${busyUser} end, i, ${author}, ${at('i')}
     from generate_series(7, ${posts}, 10) as i, generate_series(0, 3) as k
     on conflict do nothing`,
    `insert into photos (guid, author_id, post_id, position, public, name, height, width, created_at)
     select ${guid('other', 'i * 2 + k')}, ${person('i / 10')}, i, k, true, 'photo' || i || '.jpg', 480, 640, ${at('i')}
     from generate_series(4, ${posts}, 10) as i, generate_series(0, 1) as k`,
    `insert into polls (id, guid, post_id, question)
     overriding system value
     select i, ${guid('other')}, i, 'Noon?' from generate_series(5, ${posts}, 10) as i`,
    `insert into poll_answers (id, guid, poll_id, position, answer, vote_count)
     overriding system value
     select i * 4 + k, ${guid('other', 'i * 4 + k')}, i, k, 'Answer ' || k, k
     from generate_series(5, ${posts}, 10) as i, generate_series(0, 2) as k`,
    `insert into mentions (person_id, post_id, created_at)
     select ${person('i / 10 + 1')}, i, ${at('i')} from generate_series(6, ${posts}, 10) as i`,
    `insert into participations (guid, post_id, author_id)
     select ${guid('other')}, i, case when i % 20 = 0 then ${busyUser} else ${user('i / 10 + 1')} end from ${series(posts)}`,

    // Each post has five comments. One comment of twenty has a mention.
    // Four of five likes are of posts, the fifth is of a comment.
    `insert into comments (id, guid, post_id, author_id, text, likes_count, created_at, post_created_at)
     overriding system value
     select i + 1, ${guid('comment', 'i + 1')}, post, author, ${words} || i || '** goes home.', (i % 5 = 3)::int,
       ${at('i', posts * 5)}, case when author <= ${users} then ${at('post')} end
     from generate_series(0, ${posts * 5 - 1}) as i, lateral (
       select case when i % 100 = 0 then ${hotPost} else 1 + i / 5 end as post, ${person('i * 7 + i / 1000')} as author
     ) as places`,
    `insert into mentions (person_id, comment_id)
     select ${person('i')}, i + 1 from generate_series(1, ${posts * 5 - 1}, 20) as i`,
    `insert into likes (guid, author_id, post_id, comment_id, post_created_at)
     select ${guid('like')}, author, case when i % 5 < 4 then 1 + i / 5 end, case when i % 5 = 4 then i end,
       case when i % 5 < 4 and author <= ${users} then ${at('1 + i / 5')} end
     from generate_series(0, ${posts * 5 - 1}) as i, lateral (select ${person('i * 13 + i / 5')} as author) as liking`,
    `insert into activity_entries (user_id, post_id, interacted_at)
     select author_id, post_id, ${at('post_id')} from participations
     union
     select author_id, id, interacted_at from posts where author_id <= ${users}`,

    // Each user shares with fifty others, and follows twenty tags.
    `insert into aspects (id, user_id, name, position)
     overriding system value
     select i, i, 'Friends', 1 from ${series(users)}`,
    `insert into contacts (user_id, person_id, receiving)
     select i, ${person('i * 7 + k * 11')}, true from ${series(users)}, generate_series(1, 50) as k
     union
     select ${busyUser}, i, true from generate_series(2, ${people}, 5) as i`,
    `insert into aspect_memberships (aspect_id, contact_id) select user_id, id from contacts`,
    `insert into tags (id, name) overriding system value select i, 'tag' || i from ${series(tags)}`,
    `insert into taggings (tag_id, post_id, created_at)
     select case when i % 20 = 1 then ${hotTag} else 2 + i % ${tags - 1} end, i, ${at('i')}
     from generate_series(1, ${posts}, 2) as i`,
    `insert into tag_followings (user_id, tag_id)
     select i, 2 + (i * 7 + k * 11) % ${tags - 1} from ${series(users)}, generate_series(1, 20) as k
     on conflict do nothing`,

    // Each user has a thousand notifications, a hundred of them unread.
    `insert into notifications (id, guid, user_id, type, post_id, person_id, read, created_at, updated_at)
     overriding system value
     select i, ${guid('other')}, ${user('i')},
       case when kind < 5 then 'liked' when kind < 7 then 'commented_on_post' when kind < 9 then 'also_commented'
         else 'started_sharing' end,
       case when kind < 9 then i end, case when kind = 9 then ${person('i')} end, kind <> 1, ${at('i')}, ${at('i')}
     from ${series(posts)}, lateral (select (i / ${users}) % 10 as kind) as kinds`,
    `insert into notification_actors (notification_id, person_id)
     select i, ${person('i + k * 3')} from ${series(posts)}, generate_series(0, i % 3) as k`,

    `insert into conversations (id, guid, author_id, subject, created_at, updated_at)
     overriding system value
     select i, ${guid('conversation')}, ${user('i')}, 'Subject ' || i, ${at('i', conversations)}, ${at('i', conversations)}
     from ${series(conversations)}`,
    // Each conversation has two local participants and a remote one.
    `insert into conversation_visibilities (conversation_id, person_id, unread, created_at, updated_at)
     select i, person_id, case when i / ${users} % 10 = 0 and place = 1 then 1 else 0 end,
       ${at('i', conversations)}, ${at('i', conversations)}
     from ${series(conversations)}, lateral (values
       (1, ${user('i')}),
       (2, ${user(`i + 1 + (i / ${users}) % ${users - 1}`)}),
       (3, ${users} + 1 + i % ${people - users})
     ) as participants (place, person_id)`,
    `insert into messages (guid, conversation_id, author_id, text, created_at)
     select ${guid('message', 'i * 20 + k')}, i, ${user('i')}, ${words} || k || '** goes home.',
       ${at('i', conversations)} + make_interval(secs => k)
     from ${series(conversations)}, generate_series(0, 4) as k`,
  ]
}
