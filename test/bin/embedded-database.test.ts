import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { borrowDatabase, migrateIfNew } from '../../bin/borrow-database.js'
import { readConfig } from '../../src/config/config.js'
import { checkQueueSchema } from '../../src/jobs/queues/queue-schema.js'
import { copyPreparedData } from '../support/databases/prepared-data.js'
import { openEmptyDatabase } from '../support/databases/test-database.js'
import { databasePid, makeFolder, pod, until } from './program.js'

describe('a command while no pod runs', { timeout: 180_000 }, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  beforeEach(async () => {
    folder = await makeFolder()
  })
  afterEach(() => folder.remove())

  it.each([['user', 'list'], ['status'], ['doctor'], ['db', 'status'], ['pods', 'list'], ['dead', 'list']])(
    'that only reads makes neither a database nor a key: %s %s',
    async (...words) => {
      const { code, stdout, stderr } = await pod(words, { DATA_DIR: folder.path })

      expect(code).toBe(1)
      expect(stdout + stderr).toContain('There is no pod in')
      expect(readdirSync(folder.path)).toEqual([])
    },
  )

  it('uses the address of the pod of its data folder, and creates no account under another one', async () => {
    await copyPreparedData(folder.path)
    const settings = { DATA_DIR: folder.path }
    writeFileSync(join(folder.path, 'address.json'), JSON.stringify({ url: 'http://localhost:5700', pid: process.pid }))

    const other = await pod(['user', 'create', 'alice', '--json'], { ...settings, PORT: '5701' })
    expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('runs at http://localhost:5700')])

    const made = await pod(['user', 'create', 'alice', '--json'], settings)
    expect(JSON.parse(made.stdout)).toMatchObject({ address: 'alice@localhost:5700' })
    expect(JSON.parse((await pod(['user', 'list', '--json'], settings)).stdout)).toHaveLength(1)
  })

  it('creates the embedded database, uses it and stops it', async () => {
    const settings = { DATA_DIR: folder.path }

    const first = await pod(['user', 'create', 'alice', '--json'], settings)
    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(existsSync(join(folder.path, 'postgres', 'PG_VERSION'))).toBe(true)
    expect(databasePid(folder.path)).toBeUndefined()

    const refused = await pod(['user', 'show', 'nobody'], settings)
    expect(refused.code).toBe(1)
    expect(databasePid(folder.path)).toBeUndefined()
  })

  it('works concurrently with commands that start at the same time', async () => {
    const settings = { DATA_DIR: folder.path }

    const names = ['alice', 'bob', 'carol']
    const outcomes = await Promise.all(names.map((name) => pod(['user', 'create', name, '--json'], settings)))

    expect(outcomes).toMatchObject(outcomes.map(() => ({ code: 0, stderr: '' })))
    expect(databasePid(folder.path)).toBeUndefined()
  })

  it('makes the tables of the queue first, so that another command never finds only those of the pod', async () => {
    await using database = await openEmptyDatabase()
    const lockHolder = new Client({ connectionString: database.url })
    await lockHolder.connect()
    await lockHolder.query(`select pg_advisory_lock(hashtextextended('migrations', 0))`)

    const migrated = migrateIfNew(database.url)
    await expect.poll(() => checkQueueSchema(database.url).catch(String)).toBeUndefined()

    await lockHolder.end()
    await migrated
  })

  it('does not stop the database while another command uses it; a later command starts its own', async () => {
    await copyPreparedData(folder.path)
    const config = readConfig({ DATA_DIR: folder.path })
    const host = await borrowDatabase(config)
    const guest = await borrowDatabase(config)
    expect(guest.url).toBe(host.url)

    const hostLeft = host.release()
    await until(async () => (await answerOf(guest.url, waitingForAll)) === 1)
    const late = borrowDatabase(config)
    await until(async () => (await answerOf(guest.url, waitingForAll)) === 2)

    await guest.release()
    await hostLeft
    const next = await late
    expect(await answerOf(next.url, 'select 1 as answer')).toBe(1)
    await next.release()
    expect(databasePid(folder.path)).toBeUndefined()
  })

  it('does not use a database that is shutting down, although it accepts a waiting connection', async () => {
    await copyPreparedData(folder.path)
    const config = readConfig({ DATA_DIR: folder.path })
    const host = await borrowDatabase(config)
    const lockHolder = new Client({ connectionString: host.url })
    await lockHolder.connect()
    await lockHolder.query('select pg_advisory_lock(7061708)')
    const late = borrowDatabase(config)
    await until(async () => (await answerOf(host.url, waitingForAll)) === 1)

    process.kill(databasePid(folder.path) ?? 0, 'SIGTERM') // smart shutdown: open sessions stay, new ones are refused
    await until(() =>
      answerOf(host.url, 'select 1 as answer')
        .then(() => false)
        .catch(() => true),
    )
    await lockHolder.end()
    await host.release()

    const { url, release } = await late
    expect(await answerOf(url, 'select 1 as answer')).toBe(1)
    await release()
  })
})

const waitingForAll = `select count(*)::int as answer from pg_locks where locktype = 'advisory' and not granted`

async function answerOf(url: string, question: string): Promise<unknown> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(question)).rows[0]?.answer
  } finally {
    await client.end()
  }
}
