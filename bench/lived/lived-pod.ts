import { createUser } from '../../src/domain/accounts/accounts.js'
import { QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { countKind, type LivedCorpus } from './lived-corpus.js'

/** A local account of the corpus. */
export interface LivedUser {
  readonly personId: number
  readonly guid: string
}

/** Creates the accounts with the keys of the corpus, the people of other pods, and contacts in both directions. */
export async function prepareLived(
  services: OpenServices,
  corpus: LivedCorpus,
  ports: readonly number[],
): Promise<readonly LivedUser[]> {
  for (const { username, publicKey, privateKey } of corpus.users) {
    const crypto = { ...services.crypto, generateKeyPair: async () => ({ publicKey, privateKey }) }
    await createUser({ ...services, crypto }, { username, password: `the password of ${username}` })
  }
  await services.db.raw(
    `insert into pods (host, port, last_success_at, answered_at, participation_at)
     select '127.0.0.1', unnest(?::integer[]), now(), now(), now()`,
    [[...ports]],
  )
  const [firstPod] = await services.db('pods').select('id')
  await services
    .db('people')
    .insert(corpus.people.map(({ address, guid, publicKey }) => ({ address, guid, publicKey, podId: firstPod.id })))
  await services.db.raw('insert into profiles (person_id) select id from people where pod_id is not null')
  await services.db.raw(`
    insert into contacts (user_id, person_id, sharing, receiving)
    select users.id, people.id, true, true from users, people where people.pod_id is not null`)
  await services.db.raw(`
    insert into aspect_memberships (aspect_id, contact_id)
    select aspects.id, contacts.id from contacts join aspects on aspects.user_id = contacts.user_id and position = 1`)
  return services
    .db('users')
    .join('people', 'people.id', 'users.personId')
    .orderBy('users.id')
    .select({ personId: 'people.id', guid: 'people.guid' })
}

/** Distributes the people over the pods at these ports. */
export async function placePeople({ db }: OpenServices, ports: readonly number[]): Promise<void> {
  await db.raw(
    `update people set pod_id = pods.id
     from (select id, row_number() over (order by id) as place from people where pod_id is not null) as placed
     join unnest(?::integer[]) with ordinality as input(port, number) on placed.place % ? + 1 = input.number
     join pods on pods.port = input.port
     where people.id = placed.id`,
    [[...ports], ports.length],
  )
}

/** Deletes the rows of an earlier round and inserts the posts of local users. */
export async function resetLived(
  { db }: OpenServices,
  corpus: LivedCorpus,
  users: readonly LivedUser[],
): Promise<void> {
  await db.raw(`
    truncate posts, comments, likes, participations, notifications, announcements, outbox, waiting,
      outbound_messages, deliveries, pod_bytes cascade`)
  await db('posts').insert(
    corpus.localPosts.map(({ guid, author }) => ({
      guid,
      authorId: users[author]?.personId,
      type: 'StatusMessage',
      public: true,
      text: 'a post',
    })),
  )
  await db.raw('vacuum analyze')
  await db.raw('checkpoint')
}

/** Marks statements of the bench itself, which are not counted. */
export const BENCH_MARKER = '/* bench */'

/** Returns how many messages are stored. */
export async function countStored({ db }: OpenServices, { localPosts }: LivedCorpus): Promise<number> {
  const { rows } = await db.raw(`
    select (select count(*) from posts) + (select count(*) from comments) + (select count(*) from likes) as count
    ${BENCH_MARKER}`)
  return Number(rows[0].count) - localPosts.length
}

/** Whether all work of the messages is complete. Rows exist for all jobs of the queue. */
export async function hasNoWorkLeft({ db }: OpenServices): Promise<boolean> {
  const { rows } = await db.raw(`
    select not exists (select from outbox) and not exists (select from deliveries) as done ${BENCH_MARKER}`)
  return rows[0].done
}

/** Commit time of each message by guid, in milliseconds since 1970. */
export async function findCommitTimes({ db }: OpenServices): Promise<ReadonlyMap<string, number>> {
  const each = ['posts', 'comments', 'likes'].map(
    (table) => `select guid, extract(epoch from pg_xact_commit_timestamp(xmin)) * 1000 as ms from ${table}`,
  )
  const { rows }: { rows: { guid: string; ms: string }[] } = await db.raw(each.join(' union all '))
  return new Map(rows.map(({ guid, ms }) => [guid, Number(ms)]))
}

/** Whether every message is stored once, every counter is correct, and nothing waits or has failed. */
export async function isLivedCorrect(services: OpenServices, corpus: LivedCorpus): Promise<boolean> {
  const { rows } = await services.db.raw(`
    select
      (select count(*) from posts where public) as posts,
      (select count(*) from posts where not public) as private,
      (select count(*) from comments) as comments,
      (select count(*) from likes) as likes,
      (select sum(comments_count) from posts) as "countedComments",
      (select sum(likes_count) from posts) as "countedLikes",
      (select count(*) from waiting) + (select count(*) from outbox) + (select count(*) from deliveries) as left`)
  const [found] = rows
  const comments = countKind(corpus, 'comments')
  const likes = countKind(corpus, 'likes')
  const failed = await Promise.all(QUEUES.map((queue) => services.jobs.counts(queue)))
  return (
    Number(found.posts) === countKind(corpus, 'posts') + corpus.localPosts.length &&
    Number(found.private) === countKind(corpus, 'private') &&
    Number(found.comments) === comments &&
    Number(found.likes) === likes &&
    Number(found.countedComments) === comments &&
    Number(found.countedLikes) === likes &&
    Number(found.left) === 0 &&
    failed.every((counts) => counts.failed === 0)
  )
}
