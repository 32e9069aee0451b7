import type { Knex } from 'knex'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { checkReplica } from '../../bin/doctor/check-replica.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { recordWrites } from '../../src/persistence/database/last-writes.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { openReadReplica, type ReadReplica } from '../../src/persistence/database/read-replica.js'
import { type ReplicatedDatabase, startReplicatedDatabase } from '../support/databases/replicated-database.js'
import { createTestDatabase } from '../support/databases/test-database.js'

const LIMITS = { ...WEB_DATABASE_LIMITS, pool: 2, checkIntervalMs: 20, responseTimeoutMs: 300, maxAgeMs: 300 }
const SOON = { timeout: 30_000, interval: 5 }

describe('a replica for lists', () => {
  let database: ReplicatedDatabase
  let db: Knex
  let open: ReadReplica[] = []
  beforeAll(async () => {
    database = await startReplicatedDatabase()
    db = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, applicationName: 'pod test' })
    await db.raw('create table marks (id serial primary key)')
  })
  afterAll(async () => {
    await db.destroy()
    await database.stop()
  })
  afterEach(async () => {
    await Promise.all(open.map((replica) => replica.close()))
    open = []
  })

  function openOn(replicaUrl: string) {
    const reports: { readonly sentence: string; readonly error: unknown }[] = []
    const replica = openReadReplica({
      primaryUrl: database.url,
      replicaUrl,
      applicationName: 'pod test',
      limits: LIMITS,
      report: (sentence, error) => void reports.push({ sentence, error }),
    })
    open.push(replica)
    return { replica, reports }
  }
  const mark = () => db.raw('insert into marks default values')
  const untilUsed = (replica: ReadReplica) =>
    vi.waitFor(() => expect(replica.databaseFor(undefined)).toBeDefined(), SOON)
  const untilUnused = (replica: ReadReplica) =>
    vi.waitFor(() => expect(replica.databaseFor(undefined)).toBeUndefined(), SOON)

  it('is used as soon as it has answered, and stays in use without writes', async () => {
    const { replica, reports } = openOn(database.standby.url)
    expect(replica.databaseFor(undefined)).toBeUndefined()

    await untilUsed(replica)
    const end = Date.now() + 3 * LIMITS.maxAgeMs
    await vi.waitFor(() => expect(Date.now()).toBeGreaterThan(end), SOON)
    await untilUsed(replica) // on a busy machine it may answer late in between
    await vi.waitFor(() => expect(reports.at(-1)?.sentence).toBe('lists are read from the replica'), SOON)
  })

  it('is not used while it lags, and used again when it has caught up', async () => {
    const { replica, reports } = openOn(database.standby.url)
    await untilUsed(replica)
    await database.standby.hold()
    await mark()

    await untilUnused(replica)
    expect(replica.status().age).toBeUndefined()
    await database.standby.follow()
    await untilUsed(replica)
    expect(replica.status().age).toBeLessThanOrEqual(LIMITS.maxAgeMs / 1_000)
    // On a busy machine the standby may be late once more, also at the beginning; each change is reported once.
    const inUse = 'lists are read from the replica'
    await vi.waitFor(() => expect(reports.at(-1)?.sentence).toBe(inUse), SOON)
    const isUsed = reports.map(({ sentence }) => sentence === inUse)
    expect(isUsed.length).toBeGreaterThanOrEqual(3)
    expect(isUsed.filter((each, index) => each === isUsed[index - 1])).toEqual([])
  })

  it('passes the check of the doctor', async () => {
    const findings = await checkReplica(db, { databaseReadUrl: database.standby.url })
    expect(findings).toEqual([{ check: 'replica', state: 'ok', message: expect.stringContaining('bytes behind') }])
  })

  it('is not used for a reader with a later position until it has replayed that', async () => {
    const { replica } = openOn(database.standby.url)
    await untilUsed(replica)
    await database.standby.hold()
    await mark()
    const { rows } = await db.raw(`select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint as position`)
    const { position } = rows[0]

    expect(replica.databaseFor(position)).toBeUndefined()
    expect(replica.databaseFor(undefined)).toBeDefined()
    await database.standby.follow()
    await vi.waitFor(() => expect(replica.databaseFor(position)).toBeDefined(), SOON)
    const { rows: marks } = (await replica.databaseFor(position)?.raw('select count(*) from marks')) ?? { rows: [] }
    expect(marks).toEqual((await db.raw('select count(*) from marks')).rows)
  })

  it('is not used for a while after a failed read', async () => {
    const { replica, reports } = openOn(database.standby.url)
    await untilUsed(replica)
    const error = new Error('canceling statement due to conflict with recovery')

    replica.reportFailure(error)

    expect(replica.databaseFor(undefined)).toBeUndefined()
    expect(reports.at(-1)).toEqual({ sentence: expect.stringContaining('primary'), error })
    await untilUsed(replica)
    expect(replica.status().lists.failed).toBe(1)
  })

  it('is not used if it is the primary', async () => {
    const { replica, reports } = openOn(database.url)
    await vi.waitFor(() => expect(reports).toHaveLength(1), SOON)
    expect(String(reports[0]?.error)).toContain('not a replica')
    expect(replica.databaseFor(undefined)).toBeUndefined()
  })

  it('is not used if it is the replica of another database', async () => {
    const other = await startReplicatedDatabase({ prepared: false })
    try {
      const { replica, reports } = openOn(other.standby.url)
      await vi.waitFor(() => expect(reports).toHaveLength(1), SOON)
      expect(String(reports[0]?.error)).toContain('another database')
      expect(replica.databaseFor(undefined)).toBeUndefined()
    } finally {
      await other.stop()
    }
  })

  it('is not used after it has stopped', async () => {
    const { replica, reports } = openOn(database.standby.url)
    await untilUsed(replica)
    await database.standby.kill()
    await untilUnused(replica)
    await vi.waitFor(() => expect(reports.at(-1)?.error).toBeInstanceOf(Error), SOON)
  })
})

describe('the last write of a user', () => {
  it('is recorded for several users at once, and not for unknown ones', async () => {
    const database = await createTestDatabase()
    const db = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, applicationName: 'pod test' })
    try {
      await recordWrites(db, [])
      await recordWrites(db, [7, 8])
      expect(await db('last_writes')).toEqual([])
    } finally {
      await db.destroy()
      await database.drop()
    }
  })
})
