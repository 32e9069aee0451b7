import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { migrations } from '../../migrations/index.js'
import { migrateTo } from '../../src/persistence/database/migrate.js'
import { recordHeartbeat } from '../../src/persistence/operations/processes.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { openSmallDisk } from '../support/files/small-disk.js'
import { KNOWN_POD } from './place.js'
import { makeFolder, pod, type Settings } from './program.js'

let database: OpenDatabase
let folder: Awaited<ReturnType<typeof makeFolder>>
let settings: Settings
beforeAll(async () => {
  database = await openEmptyDatabase()
  folder = await makeFolder()
  settings = { ...KNOWN_POD, DATABASE_URL: database.url, DATA_DIR: folder.path }
  await migrateTo(database.db, [...migrations.keys()].slice(0, -1))
})
afterAll(async () => {
  await database.close()
  await folder.remove()
})

it('upgrade check names all that is not ready and exits with 1, until the pod is ready', async () => {
  const facts = { rssBytes: 1, heapBytes: 1, busyPercent: 1, queues: [], jobs: [] }
  const other = { id: randomUUID(), kind: 'web', host: 'host', pid: 7, startedAt: new Date(), facts, version: '0.9.0' }
  await recordHeartbeat(database.db, other)

  const early = await pod(['upgrade', 'check'], settings)
  expect(early).toMatchObject({ code: 1, stderr: 'The pod is not ready for this version.\n' })
  expect(early.stdout).toMatch(/^fail +migrations +1 migrations are pending/m)
  expect(early.stdout).toMatch(/^fail +processes +Processes of another version .* restart web 7 on host \(0\.9\.0\)/m)

  expect(await pod(['db', 'migrate'], settings)).toMatchObject({ code: 0 })
  await database.db('processes').delete()
  const { code, stdout } = await pod(['upgrade', 'check', '--json'], settings)
  expect({ code, ...JSON.parse(stdout) }).toMatchObject({ code: 0, ready: true })
})

it('upgrade check names a full disk', async ({ skip }) => {
  await using disk = await openSmallDisk(50)
  if (disk === undefined) return skip('this user may not mount a small file system')

  const { code, stdout } = await pod(['upgrade', 'check'], { ...settings, DATA_DIR: disk.folder })

  expect(code).toBe(1)
  expect(stdout).toMatch(/^fail +disk +\d+ MiB are free in .*, and an upgrade may need 100 MiB: free some space\./m)
})
