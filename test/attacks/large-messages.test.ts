import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Services } from '../../src/services/services.js'
import { buildApp } from '../../src/web/server/app.js'
import { buildPod, NO_EVENT_LOOP_LIMIT } from '../support/pods/build-pod.js'
import { openTestStores, queueBackends } from '../support/queues/queue-backends.js'

const BODY = Buffer.alloc(8 * 1024 * 1024, 'x')
const FLOOD = 60
const SMALL = 100

describe.each(queueBackends)('S88: 480 MiB of one address, with the queue in $store', (backend) => {
  it('do not displace the small messages of others', async () => {
    const stores = await openTestStores(backend)
    onTestFinished(() => stores.close())
    const { jobs } = await stores.openPod()
    const web = await buildPod()
    onTestFinished(() => web.close())
    const pod: Services = { ...web.pod, jobs }
    const app = await buildApp({ ...web.pod, ...pod }, { limits: NO_EVENT_LOOP_LIMIT })
    onTestFinished(() => app.close())
    const send = async (ip: string, payload: Buffer | string) => {
      const headers = { 'x-forwarded-for': ip }
      return (await app.inject({ method: 'POST', url: '/receive/public', headers, payload })).statusCode
    }

    const flood: number[] = []
    const sendFlood = async () => {
      for (let count = 0; count < FLOOD / 4; count += 1) flood.push(await send('203.0.113.1', BODY))
    }
    const small: number[] = []
    const sendSmall = async () => {
      for (let count = 0; count < SMALL; count += 1) small.push(await send(`198.51.100.${count}`, 'a small message'))
    }
    await Promise.all([sendFlood(), sendFlood(), sendFlood(), sendFlood(), sendSmall()])
    await sendSmall()

    const refused = small.filter((status) => status !== 202)
    expect(refused.length).toBeLessThan(small.length / 50)
    expect(flood.filter((status) => status === 202).length).toBeLessThanOrEqual(12)
    await vi.waitFor(async () => expect(await send('203.0.113.1', BODY)).toBe(429))
    expect(await send('198.51.100.1', 'a small message')).toBe(202)
  })
})
