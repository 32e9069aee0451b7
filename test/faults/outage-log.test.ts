import { afterEach, describe, expect, it, vi } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { openServices } from '../../src/services/open-services.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { openTcpProxy } from '../support/http/tcp-proxy.js'
import { buildPod } from '../support/pods/build-pod.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { openTestStores, queueBackends } from '../support/queues/queue-backends.js'
import { startTestWorkers } from '../support/queues/test-workers.js'

const INFO = 30
const WARNING = 40
const cleanups: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

describe.each(queueBackends)('the log of an outage of database and queue, with the queue in $store', (backend) => {
  /** Starts stores that can be disconnected, and a log. */
  async function openStores() {
    const stores = await openTestStores(backend)
    cleanups.push(() => stores.close())
    const addresses = [stores.databaseUrl, ...(stores.redisUrl === undefined ? [] : [stores.redisUrl])]
    const proxies = await Promise.all(addresses.map((address) => openTcpProxy(Number(new URL(address).port))))
    cleanups.push(() => Promise.all(proxies.map((proxy) => proxy.close())))
    const [DATABASE_URL = '', REDIS_URL] = addresses.map(
      (address, index) => Object.assign(new URL(address), { port: `${proxies[index]?.port}` }).href,
    )
    const recordedLog = openRecordedLog()
    const lines = (level: number) => recordedLog.entries().filter((entry) => Number(entry['level']) >= level)
    return {
      log: recordedLog.log,
      environment: { DATABASE_URL, ...(REDIS_URL !== undefined && { REDIS_URL }) },
      lines,
      about: (words: string) => lines(INFO).filter(({ msg }) => msg === words),
      refuse: () => Promise.all(proxies.map((proxy) => proxy.refuse())),
      pass: () => Promise.all(proxies.map((proxy) => proxy.recover())),
    }
  }

  type Stores = Awaited<ReturnType<typeof openStores>>

  async function untilLogged({ about }: Stores, event: 'lost' | 'restored'): Promise<void> {
    const check = () => {
      for (const name of ['database', 'queue']) expect(about(`${name} connection ${event}`)).toHaveLength(1)
    }
    await vi.waitFor(check, { timeout: 30_000, interval: 20 })
  }

  it('contains one line of a web process at its start and one at its end, and none for each request', async () => {
    const stores = await openStores()
    const pod = await buildPod({ log: stores.log, environment: stores.environment })
    cleanups.push(() => pod.close())
    const read = () => pod.app.inject({ url: '/api/v1/user', headers: { authorization: 'Bearer unknown' } })
    const readiness = () => pod.app.inject('/health/ready')
    expect((await readiness()).statusCode).toBe(200)

    await stores.refuse()
    const statuses = (await Promise.all(Array.from({ length: 20 }, read))).map(({ statusCode }) => statusCode)
    expect(statuses).toEqual(Array(20).fill(503))
    expect((await readiness()).json()).toMatchObject({ database: 'unavailable', queue: 'unavailable' })
    await untilLogged(stores, 'lost')
    expect(stores.lines(WARNING).map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(['database connection lost', 'queue connection lost']),
    )
    expect(stores.lines(WARNING)).toHaveLength(2)
    const ids = stores.about('request completed').map(({ reqId }) => reqId)
    expect(new Set(ids).size).toBe(ids.length)

    await stores.pass()
    await untilLogged(stores, 'restored')
    expect(stores.about('database connection restored')).toMatchObject([{ seconds: expect.any(Number) }])
    expect(stores.lines(WARNING)).toHaveLength(2)
  }, 180_000)

  it('contains one line of a worker at its start and one at its end, and none for each job', async () => {
    const stores = await openStores()
    const config = readConfig({
      POD_URL: 'https://pod.example',
      SECRET_KEY: 'a key that is only good for tests',
      ...stores.environment,
    })
    const pod = await openServices(config, 'worker', { crypto: fixedKeyCrypto(), log: stores.log })
    cleanups.push(() => pod.close())
    const workers = startTestWorkers(pod, { queues: ['maintenance'], handlers: { maintenance: maintenanceHandlers } })
    cleanups.push(() => workers.close())
    await vi.waitFor(async () => expect((await workers.health()).hasDatabase).toBe(true))

    await stores.refuse()
    await untilLogged(stores, 'lost')
    await stores.pass()
    await untilLogged(stores, 'restored')

    expect(
      stores
        .lines(WARNING)
        .map(({ msg }) => msg)
        .toSorted(),
    ).toEqual(['database connection lost', 'queue connection lost'])
  }, 180_000)
})
