import type { ChildProcess } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { INBOUND_QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { OpenServices } from '../../src/services/open-services.js'
import type { BenchStores } from '../machine/bench-stores.js'
import { forkFile, nextMessage } from '../machine/child-process.js'
import { makeBareTable } from '../machine/machine.js'
import type { InboundCorpus } from './inbound-corpus.js'

/** Interval of the row counts, which cost processor time of the server. */
const COUNT_INTERVAL_MS = 100
const TABLES = ['posts', 'comments', 'likes'] as const

export function environmentOf({ databaseUrl, redisUrl }: BenchStores): NodeJS.ProcessEnv {
  return {
    ...process.env,
    POD_URL: 'https://pod.example',
    PORT: '0',
    ADMIN_LISTEN: '',
    LOG_LEVEL: 'error',
    DATABASE_URL: databaseUrl,
    REDIS_URL: redisUrl ?? '',
    ALLOW_PRIVATE_ADDRESSES: 'true',
    SECRET_KEY: 'a key that is only good for benches',
  }
}

/** Inserts the people of the corpus, and adds the write time to the tables of messages. */
export async function prepareDatabase(db: Knex, { people }: InboundCorpus): Promise<void> {
  for (const table of TABLES) {
    await db.raw(
      `alter table ${table} add column if not exists written_at timestamptz not null default clock_timestamp()`,
    )
  }
  await makeBareTable(db)
  for (const person of people) await addPerson(db, person)
}

export async function addPerson(
  db: Knex,
  { address, guid, publicKey }: InboundCorpus['people'][number],
): Promise<void> {
  const host = address.split('@')[1] ?? ''
  const [pod] = await db('pods').insert({ host, ssl: true }).returning('id')
  const [person] = await db('people').insert({ guid, address, publicKey, podId: pod.id }).returning('id')
  await db('profiles').insert({ personId: person.id })
}

/** A web or worker process of a pod; a worker has port 0. */
export interface PodProcess {
  readonly name: 'web' | 'worker'
  readonly child: ChildProcess
  readonly port: number
}

export async function startProcess(
  path: string,
  env: NodeJS.ProcessEnv,
  execArgv: readonly string[] = process.execArgv,
): Promise<PodProcess> {
  const child = forkFile(path, { env, execArgv: [...execArgv], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const { address } = await nextMessage<{ readonly address: string | null }>(child)
  return {
    name: address === null ? 'worker' : 'web',
    child,
    port: address === null ? 0 : Number(new URL(address).port),
  }
}

/** Deletes the rows of earlier rounds and inserts the parents. */
export async function resetRows(db: Knex, { parents, people }: InboundCorpus): Promise<void> {
  await db.raw('truncate posts, comments, likes, participations, outbox, waiting cascade')
  const addresses = people.map(({ address }) => address)
  const known = await db('people').whereIn('address', addresses).select('id', 'address')
  const ids = new Map(known.map(({ id, address }) => [address, id]))
  const rows = parents.map(({ guid, author }) => ({
    guid,
    authorId: ids.get(author),
    type: 'StatusMessage',
    public: true,
    text: 'a post',
  }))
  await db('posts').insert(rows)
  await db.raw('vacuum analyze posts, comments, likes, people, outbox')
  await db.raw('checkpoint')
}

/** Number of stored messages and their parents. */
export async function countRows(db: Knex): Promise<number> {
  const counted = TABLES.map((table) => `(select count(*) from ${table})`).join(' + ')
  const { rows } = await db.raw(`select ${counted} as count`)
  return Number(rows[0].count)
}

/** Waits until all messages are stored. Returns their write times by guid, in milliseconds since 1970. */
export async function waitUntilWritten(
  db: Knex,
  { messages, parents }: InboundCorpus,
): Promise<ReadonlyMap<string, number>> {
  while ((await countRows(db)) < messages.length + parents.length) await pause(COUNT_INTERVAL_MS)
  const all = TABLES.map((table) => `select guid, extract(epoch from written_at) * 1000 as ms from ${table}`)
  const { rows }: { rows: { guid: string; ms: string }[] } = await db.raw(all.join(' union all '))
  const parentGuids = new Set(parents.map(({ guid }) => guid))
  return new Map(rows.filter(({ guid }) => !parentGuids.has(guid)).map(({ guid, ms }) => [guid, Number(ms)]))
}

/** Whether every message is stored once, every counter is correct, and no work is left. */
export async function isCorrect({ db, jobs }: OpenServices, corpus: InboundCorpus): Promise<boolean> {
  const { rows } = await db.raw(
    `select (select count(*) from waiting) + (select count(*) from outbox where name <> 'announce') as "leftOver"`,
  )
  const countsOfQueues = await Promise.all(INBOUND_QUEUES.map((queue) => jobs.counts(queue)))
  return (
    (await areCountsCorrect(db, corpus)) &&
    Number(rows[0].leftOver) === 0 &&
    countsOfQueues.every((counts) => counts.failed === 0)
  )
}

export async function areCountsCorrect(db: Knex, { kinds, parents }: InboundCorpus): Promise<boolean> {
  const { rows } = await db.raw(`
    select
      (select count(*) from posts) as posts,
      (select count(*) from comments) as comments,
      (select count(*) from likes) as likes,
      (select sum(comments_count) from posts) as "countedComments",
      (select sum(likes_count) from posts) as "countedLikes"`)
  const [found] = rows
  return (
    Number(found.posts) === kinds.posts + parents.length &&
    Number(found.comments) === kinds.comments &&
    Number(found.likes) === kinds.likes &&
    Number(found.countedComments) === kinds.comments &&
    Number(found.countedLikes) === kinds.likes
  )
}
