import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { testLog } from '../support/assertions/test-log.js'
import { createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { startTestRedis, type TestRedis, whyNoRedis } from '../support/queues/redis-server.js'

describe.runIf(whyNoRedis() === undefined)('an isolated copy with the Redis of its original', () => {
  let databases: readonly [TestDatabase, TestDatabase]
  let redis: TestRedis
  beforeAll(async () => {
    databases = [await createTestDatabase(), await createTestDatabase()]
    redis = await startTestRedis()
  })
  afterAll(async () => {
    await redis.stop()
    for (const database of databases) await database.drop()
  })

  function open({ url }: TestDatabase, settings: NodeJS.ProcessEnv = {}): Promise<OpenServices> {
    const config = readConfig({
      ...{ POD_URL: 'https://pod.example', DATABASE_URL: url, DATA_DIR: tmpdir(), REDIS_URL: redis.url },
      ...{ SECRET_KEY: 'a key that is only good for tests', ...settings },
    })
    return openServices(config, 'worker', { crypto: fixedKeyCrypto(), log: testLog() })
  }

  it('does not see the accepted messages of the original', async () => {
    const original = await open(databases[0])
    const copy = await open(databases[1], { ISOLATED: 'true' })

    await original.jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages: ['one'] })

    expect(await original.jobs.notDone('inbound')).toHaveLength(1)
    expect(await copy.jobs.notDone('inbound')).toEqual([])
    await copy.close()
    await original.close()
  })
})
