import type { ChildProcess } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { INBOUND_QUEUES } from '../../src/jobs/queues/queue-names.js'
import type { OpenServices } from '../../src/services/open-services.js'
import type { BenchStores } from '../machine/bench-stores.js'
import { forkFile, said } from '../machine/child-process.js'
import { makeBareTable } from '../machine/machine.js'
import type { InboundCorpus } from './inbound-corpus.js'

/** To count rows costs the server something, too. */
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

/** All people are known here, and each row has the time at which it was written. */
export async function prepare(db: Knex, { people }: InboundCorpus): Promise<void> {
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
  const { address } = await said<{ readonly address: string | null }>(child)
  return {
    name: address === null ? 'worker' : 'web',
    child,
    port: address === null ? 0 : Number(new URL(address).port),
  }
}

export async function empty(db: Knex, { parents, people }: InboundCorpus): Promise<void> {
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

/** Messages that are stored, and what they are about. */
export async function countRows(db: Knex): Promise<number> {
  const counted = TABLES.map((table) => `(select count(*) from ${table})`).join(' + ')
  const { rows } = await db.raw(`select ${counted} as count`)
  return Number(rows[0].count)
}

/** By guid, milliseconds since 1970. */
export async function untilWritten(
  db: Knex,
  { messages, parents }: InboundCorpus,
): Promise<ReadonlyMap<string, number>> {
  while ((await countRows(db)) < messages.length + parents.length) await pause(COUNT_INTERVAL_MS)
  const all = TABLES.map((table) => `select guid, extract(epoch from written_at) * 1000 as ms from ${table}`)
  const { rows }: { rows: { guid: string; ms: string }[] } = await db.raw(all.join(' union all '))
  const isParent = new Set(parents.map(({ guid }) => guid))
  return new Map(rows.filter(({ guid }) => !isParent.has(guid)).map(({ guid, ms }) => [guid, Number(ms)]))
}

/** Every message once, every counter true, and nothing left over. */
export async function isRight({ db, jobs }: OpenServices, corpus: InboundCorpus): Promise<boolean> {
  const { rows } = await db.raw(
    `select (select count(*) from waiting) + (select count(*) from outbox where name <> 'announce') as "leftOver"`,
  )
  const failed = await Promise.all(INBOUND_QUEUES.map((queue) => jobs.counts(queue)))
  return (
    (await countsAreRight(db, corpus)) &&
    Number(rows[0].leftOver) === 0 &&
    failed.every((counts) => counts.failed === 0)
  )
}

export async function countsAreRight(db: Knex, { kinds, parents }: InboundCorpus): Promise<boolean> {
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
