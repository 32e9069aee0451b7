import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { buildApp } from '../../src/web/server/app.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { recordInboundQueue } from '../support/queues/inbound-queue-recorder.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const LIMITS = {
  ...RECEIVE_LIMITS,
  bytes: 2 ** 28,
  fairFromMessages: 40,
  messagesPerShare: 20,
  messagesOfSource: 160,
  pollIntervalMs: 3_600_000,
}
const FLOODER = '198.51.100.1'
/** The flooder's that are in line before anybody looks at who has sent what, and those that pass as ordinary ones. */
const BEFORE = LIMITS.fairFromMessages + 1 + LIMITS.messagesPerShare
const IN_ALL = 400
const OTHERS = 20

let fakePods: FakePods
let pod: AttackedPod
let app: FastifyInstance
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods, queues: [] })
  app = await buildApp(pod, { receive: LIMITS })
})
afterAll(async () => {
  await app.close()
  await pod.close()
  await fakePods.close()
})

/** As a proxy on this machine passes it on. */
async function send(ip: string, body: string) {
  const { statusCode, headers } = await app.inject({
    method: 'POST',
    url: '/receive/public',
    payload: body,
    headers: { 'x-forwarded-for': ip },
  })
  return { status: statusCode, retryAfter: headers['retry-after'] }
}

describe('S84: a source that sends four messages where all others together send one', () => {
  const refusals: unknown[] = []
  const ofOthers: number[] = []
  const ofClient: number[] = []
  let accepted = 0
  beforeAll(async () => {
    const { ann } = await pod.people('ann')
    for (let count = 0; count < IN_ALL; count += 1) {
      if (count % 5 < 4) {
        const { status, retryAfter } = await send(FLOODER, `flood ${count}`)
        if (status === 202) accepted += 1
        else refusals.push([status, retryAfter])
      } else ofOthers.push((await send(`203.0.113.${count % OTHERS}`, `other ${count}`)).status)
      if (count % 40 === 0) {
        const headers = { authorization: `Bearer ${ann.token}` }
        ofClient.push((await app.inject({ url: '/api/v1/user', headers })).statusCode)
      }
    }
  })

  it('is rejected with Retry-After, and no other source is', () => {
    expect(refusals.length).toBeGreaterThan(100)
    expect([...new Set(refusals.map(String))]).toEqual(['429,120'])
    expect([...new Set(ofOthers)]).toEqual([202])
    expect([...new Set(ofClient)]).toEqual([200])
  })

  it('lets the messages of all others pass, however late they came', async () => {
    await using taken = recordInboundQueue(pod)
    const order = (await taken.until(accepted + ofOthers.length)).map(({ envelope }) => envelope)
    const floods = order.flatMap((envelope, place) => (envelope.startsWith('flood') ? [place] : []))
    const last = order.findLastIndex((envelope) => envelope.startsWith('other'))

    expect(ofOthers).toHaveLength(IN_ALL / 5)
    expect(floods.filter((place) => place < last).length).toBeLessThanOrEqual(BEFORE)
    expect(floods.filter((place) => place > last).length).toBeGreaterThanOrEqual(accepted - BEFORE)
  })
})
