import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { checkReplica } from '../../bin/doctor/check-replica.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { createTestDatabase } from '../support/databases/test-database.js'

describe('pod doctor, on a replica', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let db: ReturnType<typeof openDatabase>
  beforeAll(async () => {
    database = await createTestDatabase()
    db = openDatabase({ ...WEB_DATABASE_LIMITS, url: database.url, applicationName: 'pod test' })
  })
  afterAll(async () => {
    await db.destroy()
    await database.drop()
  })

  it('reports nothing without a replica', async () => {
    expect(await checkReplica(db, { databaseReadUrl: undefined })).toEqual([])
  })

  it('warns of a replica that accepts writes', async () => {
    const findings = await checkReplica(db, { databaseReadUrl: database.url })
    expect(findings).toEqual([{ check: 'replica', state: 'warn', message: expect.stringContaining('not a replica') }])
  })

  it('warns of a replica that does not respond, without its password', async () => {
    const [finding] = await checkReplica(db, { databaseReadUrl: 'postgres://pod:hunter2@127.0.0.1:1/pod' })
    expect(finding).toMatchObject({ state: 'warn', message: expect.stringContaining('127.0.0.1:1') })
    expect(finding?.message).not.toContain('hunter2')
  })
})
