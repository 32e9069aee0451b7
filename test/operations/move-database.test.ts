import { afterAll, beforeAll, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import { findServerFault, type MoveOptions, moveDatabase } from '../../src/operations/move-database.js'
import { openUnlimitedSession } from '../../src/persistence/database/database.js'
import {
  findUnfinishedRestore,
  inspectRestoreTarget,
  isDatabaseMoving,
} from '../../src/persistence/operations/restore-target.js'
import { type OpenServices, openServices, requireCompleteDatabase } from '../../src/services/open-services.js'
import { addPost, addUserRow } from '../support/databases/rows.js'
import { createTestDatabase, openEmptyDatabase, type TestDatabase } from '../support/databases/test-database.js'
import { buildPod } from '../support/pods/build-pod.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { rowsOf, schemaOf } from './backup-fixture.js'

let database: TestDatabase
let source: OpenServices
beforeAll(async () => {
  database = await createTestDatabase()
  const settings = {
    POD_URL: 'https://pod.example',
    SECRET_KEY: 'a key that is only good for tests',
    LOG_LEVEL: 'silent',
  }
  source = await openServices(readConfig({ ...settings, DATABASE_URL: database.url }), 'command', {
    crypto: fixedKeyCrypto(),
  })
  const user = await addUserRow(source, 'ann')
  for (const text of ['\\N', 'a\tb\nc', 'ä€😀']) await addPost(source, { id: user.personId }, { text })
  await source.db('figures').insert({ minute: new Date(), name: 'test', labels: '{}', count: 1 })
  const gone = await addPost(source, { id: user.personId })
  await source.db('posts').where({ id: gone.id }).delete()
})
afterAll(async () => {
  await source.close()
  await database.drop()
})

const uninterrupted = { isRepeated: false, signal: new AbortController().signal, report: () => undefined }
const move = (url: string, options: Partial<MoveOptions> = {}) =>
  moveDatabase(source, url, { ...uninterrupted, ...options })

it('is refused while the pod runs, and for a database with tables; nothing is written', async () => {
  await using target = await openEmptyDatabase()
  await using running = await buildPod({ web: false, process: 'worker' })
  await expect(moveDatabase(running.pod, target.url, uninterrupted)).rejects.toThrow('in use by worker')
  expect(await inspectRestoreTarget(target.db)).toBe('empty')

  await target.db.raw('create table other (id integer)')
  await expect(move(target.url)).rejects.toThrow('it must be empty')
})

it('is refused for tables of a newer version', async () => {
  await using target = await openEmptyDatabase()
  await source.db('knex_migrations').insert({ name: '9999_newer', batch: 1, migrationTime: new Date() })
  try {
    await expect(move(target.url)).rejects.toThrow('A newer version has changed the tables')
  } finally {
    await source.db('knex_migrations').where({ name: '9999_newer' }).delete()
  }
  expect(await inspectRestoreTarget(target.db)).toBe('empty')
})

it('has the same rows, counters, keys and indexes in a new database that writes values differently', async () => {
  await using target = await openEmptyDatabase()
  const name = new URL(target.url).pathname.slice(1)
  for (const setting of ["timezone = 'Europe/Berlin'", "bytea_output = 'escape'", 'extra_float_digits = -3']) {
    await target.db.raw(`alter database ?? set ${setting}`, [name])
  }

  const moved = await move(target.url)

  expect(await rowsOf(target.db)).toEqual(await rowsOf(source.db))
  expect(await schemaOf(target.db)).toEqual(await schemaOf(source.db))
  expect(await target.db('figures')).toHaveLength(1)
  expect(moved).toMatchObject({ messages: 0, rows: expect.any(Number) })
  const last = async (db: typeof target.db) =>
    (await db.raw(`select pg_sequence_last_value('posts_id_seq') as last`)).rows[0].last
  expect(await last(target.db)).toBe(await last(source.db))
})

it('an interrupted move leaves the old database unchanged and a new one that no pod opens, until it is repeated', async () => {
  await using target = await openEmptyDatabase()
  const before = await rowsOf(source.db)
  const interruption = new AbortController()
  const report = ({ step }: { readonly step: string }) => {
    if (step === 'compared tables') interruption.abort()
  }

  await expect(move(target.url, { signal: interruption.signal, report })).rejects.toThrow('aborted')

  expect(await findUnfinishedRestore(target.db)).toBe('a move of the database')
  await expect(requireCompleteDatabase(target.db)).rejects.toThrow('unfinished move')
  expect(await rowsOf(source.db)).toEqual(before)
  await expect(move(target.url)).rejects.toThrow('--again empties it')
  await move(target.url, { isRepeated: true })
  expect(await findUnfinishedRestore(target.db)).toBeUndefined()
  expect(await rowsOf(target.db)).toEqual(before)
})

it('is refused for an old server, another encoding, a missing extension, missing rights, few connections and another time', () => {
  const server = { version: 150_000, name: '15.1', encoding: 'UTF8', connections: 97, secondsAhead: 0.2 }
  const properties = { ...server, trigrams: true, mayCreate: true }
  const faults = [
    {},
    { version: 130_009, name: '13.9' },
    { encoding: 'LATIN1' },
    { trigrams: false },
    { mayCreate: false },
    { connections: 59 },
    { secondsAhead: -31.4 },
  ]

  expect(faults.map((fault) => findServerFault({ ...properties, ...fault }))).toEqual([
    undefined,
    'PostgreSQL 14 or newer is needed; the new database has 13.9.',
    expect.stringContaining('encoding UTF8, not LATIN1'),
    expect.stringContaining('pg_trgm'),
    expect.stringContaining('owner'),
    expect.stringContaining('allows 59 connections, and a pod needs 60'),
    expect.stringContaining('is 31 seconds behind that of this machine'),
  ])
})

it('is refused for a database that allows few connections; nothing is written', async () => {
  await using target = await openEmptyDatabase()
  const name = new URL(target.url).pathname.slice(1)
  await target.db.raw('alter database ?? connection limit 20', [name])

  await expect(move(target.url)).rejects.toThrow('allows 20 connections')

  expect(await inspectRestoreTarget(target.db)).toBe('empty')
})

it('names the address of the new database if that does not answer', async () => {
  await expect(move('postgres://pod@127.0.0.1:1/pod')).rejects.toThrow(
    /^The new database cannot be opened \(.*ECONNREFUSED.*\): check the address after --to\.$/,
  )
})

it('reads a large table from its beginning, wherever another scan has stopped', async () => {
  const session = await openUnlimitedSession(source.db, 'test')
  const { rows } = await session.query(
    `select name from pg_settings where name in ('synchronize_seqscans', 'max_parallel_workers_per_gather') and setting in ('off', '0')`,
  )
  await session.end()
  expect(rows).toHaveLength(2)
})

it('lets no pod start and nothing write to the old database until it has ended, and runs once at a time', async () => {
  await using target = await openEmptyDatabase()
  await using other = await openEmptyDatabase()
  const start = () => openServices(source.config, 'worker', { crypto: fixedKeyCrypto() })
  const outcomes: unknown[] = []
  const onMoved = async () => {
    const write = source.db.raw(`set local lock_timeout = '50ms'; update people set first_name = 'late'`)
    outcomes.push(
      ...(await Promise.allSettled([start(), move(other.url), source.db.transaction((t) => write.transacting(t))])),
    )
  }

  await move(target.url, { onMoved })

  expect(outcomes).toMatchObject([
    { reason: { message: expect.stringContaining('A command is moving this database') } },
    { reason: { message: expect.stringContaining('Another command is moving this database') } },
    { reason: { message: expect.stringContaining('lock timeout') } },
  ])
  expect(await isDatabaseMoving(source.db)).toBe(false)
})

it('moves accepted messages that only the queue has', async () => {
  await using target = await openEmptyDatabase()
  const { jobs } = source
  await jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages: ['accepted'] })

  expect(await move(target.url)).toMatchObject({ messages: 1 })
  expect(await target.db('outbox').pluck('name')).toContain('receive-public')
})
