import { tmpdir } from 'node:os'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import { moveFormerQueue } from '../../src/services/former-queue.js'
import { type OpenServices, openServices, type ProcessKind, queueSettings } from '../../src/services/open-services.js'
import { testLog } from '../support/assertions/test-log.js'
import { createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { startTestRedis, type TestRedis, whyNoRedis } from '../support/queues/redis-server.js'

describe.runIf(whyNoRedis() === undefined)('a pod whose REDIS_URL is switched on or off', () => {
  let database: TestDatabase
  let redis: TestRedis
  beforeAll(async () => {
    database = await createTestDatabase()
    redis = await startTestRedis()
  })
  afterAll(async () => {
    await redis.stop()
    await database.drop()
  })

  function open(redisUrl: string | undefined, kind: ProcessKind = 'worker'): Promise<OpenServices> {
    const config = readConfig({
      POD_URL: 'https://pod.example',
      DATABASE_URL: database.url,
      DATA_DIR: tmpdir(),
      REDIS_URL: redisUrl,
      SECRET_KEY: 'a key that is only good for tests',
    })
    return openServices(config, kind, { crypto: fixedKeyCrypto(), log: testLog() })
  }

  async function accept(redisUrl: string | undefined, payload: string): Promise<void> {
    const pod = await open(redisUrl)
    await pod.jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages: [payload] })
    await pod.close()
  }

  async function move(redisUrl: string | undefined, isLost = false): Promise<number> {
    const pod = await open(redisUrl, 'command')
    const moved = await moveFormerQueue(pod, queueSettings(pod.config, database.url), isLost)
    await pod.close()
    return moved
  }

  async function rows(): Promise<readonly string[]> {
    const pod = await open(undefined, 'command')
    const payloads = await pod.db('outbox').orderBy('id').pluck<string[]>('payload')
    await pod.close()
    return payloads
  }

  it('starts where the former queue is empty', async () => {
    for (const redisUrl of [undefined, redis.url, undefined, redis.url]) await (await open(redisUrl)).close()
  })

  it('refuses to start while Redis holds accepted messages, until they are moved', async () => {
    await accept(redis.url, 'one')

    await expect(open(undefined)).rejects.toThrow(/Redis on 127\.0\.0\.1:\d+, holds messages: run "pod queues move"/)
    expect(await rows()).toEqual([])
    expect(await move(undefined)).toBe(1)

    expect(await rows()).toEqual(['one'])
    await (await open(undefined)).close()
    const before = await open(redis.url, 'command')
    expect((await before.jobs.notDone('inbound')).length).toBe(0)
    await before.close()
  })

  it('refuses to start while PostgreSQL holds accepted messages, until they are moved', async () => {
    await accept(undefined, 'two')

    await expect(open(redis.url)).rejects.toThrow('in PostgreSQL, holds messages')
    expect(await move(redis.url)).toBe(1)

    expect(await rows()).toEqual(['one', 'two'])
    await (await open(redis.url)).close()
  })
})
