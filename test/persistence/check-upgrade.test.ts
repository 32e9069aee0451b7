import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  checkFreeDisk,
  checkNode,
  checkPostgresql,
  checkRedis,
  checkSettings,
  checkUpgrade,
} from '../../bin/doctor/check-upgrade.js'
import { migrations } from '../../migrations/index.js'
import { readConfig } from '../../src/config/config.js'
import { readSoftware } from '../../src/config/software.js'
import { migrate, migrateTo } from '../../src/persistence/database/migrate.js'
import { recordHeartbeat } from '../../src/persistence/operations/processes.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { startTestRedis, whyNoRedis } from '../support/queues/redis-server.js'

const names = [...migrations.keys()]
const config = readConfig({ DATA_DIR: tmpdir() })

let database: OpenDatabase
beforeAll(async () => {
  database = await openEmptyDatabase()
})
afterAll(() => database.close())

const check = async () => (await checkUpgrade(database.db, config)).map(({ state, message }) => `${state}: ${message}`)

it('names pending migrations, a missing backup and processes of another version, until the pod is ready', async () => {
  const { db } = database
  await migrateTo(db, names.slice(0, -1))
  const facts = { rssBytes: 1, heapBytes: 1, busyPercent: 1, queues: [], jobs: [] }
  const process = { id: randomUUID(), kind: 'web', host: 'host', pid: 7, startedAt: new Date(), facts }
  await recordHeartbeat(db, { ...process, version: '0.9.0' })

  expect(await check()).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^fail: 1 migrations are pending on a database of .*: run "pod db migrate"\.$/),
      'warn: There is no backup of this pod: run "pod backup create" before the upgrade.',
      expect.stringMatching(/^fail: Processes of another version .* run: restart web 7 on host \(0\.9\.0\)\.$/),
    ]),
  )

  await migrate(db)
  await db('processes').delete()
  await db('backup_runs').insert({ id: 'one', process: 'this', endedAt: new Date() })
  expect((await check()).filter((line) => !line.startsWith('ok'))).toEqual([])
})

it('refuses a database server, a Redis and a disk that are not enough', () => {
  const messages = [
    checkPostgresql({ versionNumber: 130_022, version: '13.22' }),
    checkPostgresql({ versionNumber: 140_000, version: '14.0' }),
    checkRedis('6.0.16'),
    checkRedis('6.2.0'),
    checkFreeDisk('/data', 119 * 2 ** 20, 10 * 2 ** 20),
    checkFreeDisk('/data', 120 * 2 ** 20, 10 * 2 ** 20),
  ].map(({ state, message }) => `${state}: ${message}`)

  expect(messages).toEqual([
    'fail: PostgreSQL 13.22 is too old: upgrade it to 14 or newer.',
    'ok: PostgreSQL 14.0.',
    'fail: Redis 6.0.16 is too old: upgrade it to 6.2 or newer.',
    'ok: Redis 6.2.0.',
    'fail: 119 MiB are free in /data, and an upgrade may need 120 MiB: free some space.',
    'ok: 120 MiB are free in /data.',
  ])
})

it('names a Redis that does not answer', async () => {
  const redisUrl = 'redis://127.0.0.1:1'
  const findings = await checkUpgrade(database.db, { ...config, redisUrl })

  expect(findings.find(({ check }) => check === 'redis')).toMatchObject({ state: 'fail' })
})

it.runIf(whyNoRedis() === undefined)('reads the version of a Redis', async () => {
  const redis = await startTestRedis()
  const findings = await checkUpgrade(database.db, { ...config, redisUrl: redis.url }).finally(() => redis.stop())

  expect(findings.find(({ check }) => check === 'redis')).toMatchObject({ state: 'ok' })
})

it('names its own version, and the oldest one that can be upgraded directly', async () => {
  expect(await check()).toContain(
    `ok: This is version ${readSoftware().version}. Every earlier version can be upgraded to it directly.`,
  )
})

it('refuses a Node that is too old', () => {
  expect(checkNode('20.18.1').state).toBe('fail')
  expect(checkNode('20.19.0').state).toBe('ok')
  expect(checkNode('24.1.0').state).toBe('ok')
})

it('names settings that this version does not have', () => {
  const known = { S3_ACCESS_KEY_ID_FILE: '/run/secrets/key', BACKUP_AT: 'off', PATH: '/bin', RETENTION_POSTS: '' }

  expect(checkSettings(known)).toMatchObject({ check: 'settings', state: 'ok' })
  expect(checkSettings({ ...known, RETENTION_POST_DAYS: '90' })).toMatchObject({
    state: 'warn',
    message: expect.stringMatching(/^This version has no setting RETENTION_POST_DAYS: /),
  })
})
