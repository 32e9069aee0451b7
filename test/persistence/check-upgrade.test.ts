import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkNode, checkUpgrade } from '../../bin/doctor/check-upgrade.js'
import { migrations } from '../../migrations/index.js'
import { readConfig } from '../../src/config/config.js'
import { migrate, migrateTo } from '../../src/persistence/database/database.js'
import { recordHeartbeat } from '../../src/persistence/operations/processes.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'

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

it('refuses a Node that is too old', () => {
  expect(checkNode('20.18.1').state).toBe('fail')
  expect(checkNode('20.19.0').state).toBe('ok')
  expect(checkNode('24.1.0').state).toBe('ok')
})
