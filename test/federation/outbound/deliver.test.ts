import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { readPodActivity } from '../../../src/domain/operations/pods.js'
import { savePodCheck } from '../../../src/federation/discovery/check-pod.js'
import { deliver } from '../../../src/federation/outbound/deliver.js'
import type { DeliveryLimits } from '../../../src/federation/outbound/limits.js'
import { savePodActivity } from '../../../src/jobs/operations/pod-activity.js'
import { QueueUnavailable } from '../../../src/jobs/queues/queue-unavailable.js'
import { Person } from '../../../src/persistence/models/person.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { giveUpDeliveries } from '../../../src/persistence/outbound/dead-deliveries.js'
import { findDeliveryReports } from '../../../src/persistence/outbound/delivery-report.js'
import { findOverduePods } from '../../../src/persistence/outbound/due-deliveries.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import { decryptEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import type { PodCrypto } from '../../../src/services/pod-crypto.js'
import { prune } from '../../../workers/handlers/maintenance.js'
import { openRecordedLog } from '../../support/assertions/recorded-log.js'
import type { OutboundMessageRow } from '../../support/federation/outbound-messages.js'
import {
  addRecordingPod,
  addRemotePod,
  type RecordingPod,
  writeMessage,
} from '../../support/federation/recording-pod.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: Person
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  await createUser(pod, { username: 'ann', password: 'the password of ann' })
  ann = await Person.byAddress(pod.db, 'ann@pod.example').throwIfNotFound()
})
afterAll(() => pod.close())

async function otherPod(changes: Partial<RemotePod> = {}): Promise<RecordingPod> {
  hosts += 1
  return addRecordingPod(pod.fakePods, pod, `d${hosts}.example:3000`, changes)
}

function post(guid = newGuid()): Entity & { readonly guid: string } {
  return {
    type: 'status_message',
    author: ann.address,
    guid,
    created_at: new Date(),
    text: guid,
    photos: [],
    public: true,
  }
}

function retraction(guid: string): Entity {
  return { type: 'retraction', author: ann.address, target_guid: guid, target_type: 'Post' }
}

async function run(podId: number, limits: Partial<DeliveryLimits> = {}, on = pod): Promise<void> {
  await deliver(on, [podId], { queue: 'outbound-slow', signal: new AbortController().signal, limits })
}

/** Makes all deliveries due now. */
async function later(podId: number): Promise<void> {
  await pod
    .db('deliveries')
    .where({ podId, state: 'waiting' })
    .update({ dueAt: pod.db.raw(`now() - interval '1 second'`) })
  await pod.db('pods').where({ id: podId }).update({ nextTryAt: null })
}

/** As if all times of the pod and its deliveries were so much longer ago. */
async function daysPass(podId: number, days: number): Promise<void> {
  await pod.db.raw(
    `update pods set offline_since = offline_since - :days * interval '1 day',
       next_try_at = next_try_at - :days * interval '1 day' where id = :podId`,
    { podId, days },
  )
  await pod.db.raw(
    `update deliveries set created_at = created_at - :days * interval '1 day',
       due_at = due_at - :days * interval '1 day' where pod_id = :podId`,
    { podId, days },
  )
}

/** Seconds from now by the clock of the database. */
async function secondsUntil(time: Date | null | undefined): Promise<number> {
  const { rows } = await pod.db.raw(`select extract(epoch from ?::timestamptz - now())::double precision as seconds`, [
    time ?? new Date(0),
  ])
  return rows[0].seconds
}

describe('the report about a post', () => {
  it('has the pods at which it has arrived, with their times, for 14 days; other messages have none', async () => {
    const [one, two] = [await otherPod(), await otherPod()]
    const entity = post()
    const { id } = await writeMessage(pod, { senderId: ann.id, entity, pods: [one.id, two.id] })
    await writeMessage(pod, { senderId: ann.id, entity: post(), record: 'comment', pods: [one.id] })
    const { person } = one
    const { row } = await person()
    const ofPrivate = post()
    await writeMessage(pod, { senderId: ann.id, entity: ofPrivate, people: [row] })
    await run(two.id)
    await run(one.id)

    const report = async (guid: string) => (await findDeliveryReports(pod.db, 'post', guid))[0]
    const hosts = async (guid: string) => (await report(guid))?.arrivedAt.map(({ host, port }) => `${host}:${port}`)
    expect(await hosts(entity.guid)).toEqual([two.host, one.host])
    expect(await hosts(ofPrivate.guid)).toEqual([one.host])
    expect(await pod.db('message_results').whereNotIn('messageId', [id]).pluck('outcome')).toEqual(['arrived'])

    const age = (days: number) => pod.db.raw(`now() - make_interval(days => ?)`, [days])
    await pod.db('outbound_messages').update({ createdAt: age(13) })
    await pod.db('message_results').update({ at: age(13) })
    const three = await otherPod()
    const waiting = post()
    await writeMessage(pod, { senderId: ann.id, entity: waiting, pods: [three.id] })
    await pod
      .db('outbound_messages')
      .where({ guid: waiting.guid })
      .update({ createdAt: age(2) })
    await prune(pod)
    expect(await hosts(entity.guid)).toHaveLength(2)
    expect(await hosts(ofPrivate.guid)).toEqual([one.host])
    const texts = await pod.db<OutboundMessageRow>('outbound_messages').where({ record: 'post' }).orderBy('id')
    expect(texts.map((row) => [row.guid, row.entity === '', row.envelope])).toEqual([
      [entity.guid, true, null],
      [ofPrivate.guid, true, null],
      [waiting.guid, false, null],
    ])
    await pod.db('deliveries').delete()
    expect(await pod.db('outbound_messages').where({ record: 'comment' }).pluck('id')).toEqual([])
    await pod.db('outbound_messages').update({ createdAt: age(15) })
    await pod.db('message_results').update({ at: age(15) })
    await prune(pod)
    expect(await report(entity.guid)).toBeUndefined()
    expect(await pod.rows('message_results')).toEqual([0])
  })
})

describe('a public delivery', () => {
  it('posts the signed envelope to the public inbox', async () => {
    const other = await otherPod()
    const entity = post()
    await writeMessage(pod, { senderId: ann.id, entity, pods: [other.id] })

    await run(other.id)

    expect(other.received).toHaveLength(1)
    const [{ headers, body } = { headers: {}, body: '' }] = other.received
    expect(headers).toMatchObject({
      'content-type': 'application/magic-envelope+xml',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': 'test/1.0',
    })
    const key = readPublicKey(ann.publicKey)
    expect(verifyEnvelope(body, new Map(key ? [[ann.address, key]] : []), new Date())).toMatchObject({
      entity: { type: 'status_message', guid: entity.guid },
    })
    expect(await other.deliveries()).toEqual([])
  })

  it('counts for the day of its pod, with its duration', async () => {
    const other = await otherPod()
    for (const status of [202, 500]) {
      other.respondWith(status)
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
      await run(other.id)
    }

    await savePodActivity(pod)
    const { days, latency } = await readPodActivity(pod, other.id)
    expect(days).toEqual([{ day: expect.any(String), delivered: 1, failed: 1, received: 0, refused: 0 }])
    expect(latency.p50).toBeLessThanOrEqual(latency.p95 ?? 0)
  })

  it('writes one log line for each round, with the outcomes, the duration and the traces', async () => {
    const other = await otherPod()
    const recordedLog = openRecordedLog()
    for (let count = 0; count < 3; count += 1)
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    const traceId = 'a'.repeat(32)
    await pod.db('outbound_messages').update({ traceId })

    await run(other.id, {}, { ...pod, log: recordedLog.log })

    const round = {
      msg: 'delivery round finished',
      queue: 'outbound-slow',
      pod: expect.stringMatching(/^d\d+\.example:3000$/),
    }
    expect(recordedLog.entries().filter(({ level }) => level === 30)).toEqual([
      expect.objectContaining({ ...round, deliveries: 1, delivered: 1, ms: expect.any(Number), traces: [traceId] }),
      expect.objectContaining({ ...round, deliveries: 2, delivered: 2, ms: expect.any(Number), traces: [traceId] }),
    ])
  })

  it('is signed once for any number of pods at the same time', async () => {
    const pods = await Promise.all(Array.from({ length: 8 }, () => otherPod()))
    let signed = 0
    const crypto: PodCrypto = {
      ...pod.crypto,
      async signEnvelopes(messages) {
        signed += messages.length
        return pod.crypto.signEnvelopes(messages)
      },
    }
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: pods.map(({ id }) => id) })

    await Promise.all(pods.map(({ id }) => run(id, {}, { ...pod, crypto })))

    expect(signed).toBe(1)
    expect(new Set(pods.flatMap(({ received: got }) => got.map(({ body }) => body))).size).toBe(1)
  })

  it.each([200, 201, 204, 299])('has arrived with status %i', async (status) => {
    const other = await otherPod({ status: 'http_failed', offlineSince: new Date(0), failures: 3, lastError: 'x' })
    await pod.db('pods').where({ id: other.id }).update({ offlineSince: pod.db.fn.now() })
    other.respondWith(status)
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    await run(other.id)

    expect(await other.deliveries()).toEqual([])
    expect(await other.row()).toMatchObject({
      status: 'no_errors',
      lastError: null,
      failures: 0,
      nextTryAt: null,
      offlineSince: null,
      lastSuccessAt: expect.any(Date),
    })
  })
})

describe('a private delivery', () => {
  it('is encrypted for each recipient and posted to their own inbox', async () => {
    const other = await otherPod()
    const [bob, eve] = [await other.person(), await other.person()]
    await writeMessage(pod, { senderId: ann.id, entity: post(), people: [bob.row, eve.row] })

    await run(other.id)

    expect(other.received.map(({ path }) => path)).toEqual([`/receive/users/${bob.guid}`, `/receive/users/${eve.guid}`])
    const [forBob, forEve] = other.received
    expect(forBob?.headers['content-type']).toBe('application/json')
    const [message] = await pod.db<OutboundMessageRow>('outbound_messages').where({ senderId: ann.id, public: false })
    expect(decryptEnvelope(forBob?.body ?? '', bob.privateKey)).toBe(message?.envelope)
    expect(decryptEnvelope(forEve?.body ?? '', eve.privateKey)).toBe(message?.envelope)
    expect(decryptEnvelope(forEve?.body ?? '', bob.privateKey)).toBeUndefined()
  })

  it('is encrypted once: every retry sends the same bytes', async () => {
    const other = await otherPod()
    const bob = await other.person()
    await writeMessage(pod, { senderId: ann.id, entity: post(), people: [bob.row] })

    other.respondWith(400, `/receive/users/${bob.guid}`)
    await run(other.id)
    await later(other.id)
    other.respondWith(503, `/receive/users/${bob.guid}`)
    await run(other.id)
    await later(other.id)
    other.respondWith(202, `/receive/users/${bob.guid}`)
    await run(other.id)

    expect(other.received).toHaveLength(3)
    expect(new Set(other.received.map(({ body }) => body)).size).toBe(1)
    expect(await other.deliveries()).toEqual([])
  })

  it('to a person with an unusable key is given up and delays no other delivery', async () => {
    const other = await otherPod()
    const [bob, eve] = [await other.person(), await other.person()]
    await pod.db('people').where({ id: bob.row.id }).update({ publicKey: 'no key' })
    await writeMessage(pod, { senderId: ann.id, entity: post(), people: [bob.row, eve.row] })

    await run(other.id)

    expect(other.received.map(({ path }) => path)).toEqual([`/receive/users/${eve.guid}`])
    expect(await other.deliveries()).toMatchObject([{ personId: bob.row.id, state: 'dead', lastFault: 'no_key' }])
    expect(await other.row()).toMatchObject({ status: 'no_errors' })
  })
})

describe('an answer', () => {
  it.each([400, 401, 403, 413, 415, 422])(
    'with status %i concerns one delivery, which is tried again',
    async (status) => {
      const other = await otherPod()
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
      other.respondWith(status)

      await run(other.id)

      const [delivery] = await other.deliveries()
      expect(delivery).toMatchObject({ state: 'waiting', attempts: 1, lastStatus: status, lastFault: 'refused' })
      const seconds = await secondsUntil(delivery?.dueAt)
      expect(seconds).toBeGreaterThan(250)
      expect(seconds).toBeLessThanOrEqual(314)
      expect(await other.row()).toMatchObject({
        status: 'http_failed',
        failures: 0,
        nextTryAt: null,
        offlineSince: expect.any(Date),
      })
    },
  )

  it.each([
    [404, 'gone'],
    [405, 'gone'],
    [410, 'gone'],
    [501, 'gone'],
    [408, 'overloaded'],
    [425, 'overloaded'],
    [429, 'overloaded'],
    [500, 'overloaded'],
    [503, 'overloaded'],
  ])('with status %i to a public delivery concerns the whole pod', async (status, fault) => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith(status)

    await run(other.id)

    expect(other.received).toHaveLength(1)
    expect(await other.deliveries()).toMatchObject([
      { state: 'waiting', attempts: status === 500 ? 1 : 0, lastStatus: status, lastFault: fault },
      { state: 'waiting', attempts: 0, lastStatus: null },
    ])
    const { nextTryAt, ...row } = await other.row()
    expect(row).toMatchObject({ status: 'http_failed', failures: 1, offlineSince: expect.any(Date), drainedBy: null })
    const seconds = await secondsUntil(nextTryAt)
    expect(seconds).toBeGreaterThan(250)
    expect(seconds).toBeLessThanOrEqual(314)
  })

  it.each([404, 410])(
    'with status %i to a private delivery ends only the deliveries to that person',
    async (status) => {
      const other = await otherPod()
      const [bob, eve] = [await other.person(), await other.person()]
      await writeMessage(pod, { senderId: ann.id, entity: post(), people: [bob.row, eve.row] })
      other.respondWith(status, `/receive/users/${bob.guid}`)

      await run(other.id)

      expect(other.received.map(({ path }) => path)).toEqual([
        `/receive/users/${bob.guid}`,
        `/receive/users/${eve.guid}`,
      ])
      expect(await other.deliveries()).toMatchObject([
        { personId: bob.row.id, state: 'dead', attempts: 1, lastFault: 'gone' },
      ])
      expect(await other.row()).toMatchObject({ status: 'no_errors', failures: 0, offlineSince: null })
    },
  )

  it.each([301, 302, 307, 308])('with status %i is a failure: redirects are not followed', async (status) => {
    const [other, elsewhere] = [await otherPod(), await otherPod()]
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith({ status, headers: { location: `http://${elsewhere.host}/receive/public` } })

    await run(other.id)

    expect(elsewhere.received).toEqual([])
    expect(await other.deliveries()).toMatchObject([{ state: 'waiting', attempts: 1, lastFault: 'moved' }])
    expect(await other.row()).toMatchObject({ status: 'http_failed', failures: 0, redirects: 1, checkWanted: false })
  })

  it('three redirects in a row cause a check of the pod', async () => {
    const other = await otherPod()
    for (let n = 0; n < 3; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith({ status: 301, headers: { location: '/elsewhere' } })

    await run(other.id)

    expect(await other.row()).toMatchObject({ redirects: 3, checkWanted: true })
  })

  it('may delay the next attempt longer than the schedule', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith({ status: 503, headers: { 'retry-after': '7200' } })

    await run(other.id)

    const { nextTryAt } = await other.row()
    const seconds = await secondsUntil(nextTryAt)
    expect(seconds).toBeGreaterThan(7_190)
    expect(seconds).toBeLessThanOrEqual(7_200)
  })

  it('that never arrives is a failure of the pod', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith('nothing')

    await run(other.id, { exchangeMs: 100 })

    expect(await other.deliveries()).toMatchObject([{ attempts: 0, lastStatus: null, lastFault: 'timeout' }])
    expect(await other.row()).toMatchObject({ status: 'net_failed', failures: 1 })
  })

  it('is missing when the pod refuses connections', async () => {
    const row = await addRemotePod(pod, 'closed.example') // no server listens on its port
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [row.id] })

    await run(row.id)

    expect(await RemotePod.query(pod.db).findById(row.id)).toMatchObject({ status: 'net_failed', failures: 1 })
  })

  it('counts also from a pod with invalid NodeInfo', async () => {
    const other = await otherPod({ status: 'version_failed', lastError: 'no NodeInfo' })
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    await run(other.id)

    expect(await other.row()).toMatchObject({ status: 'version_failed', lastError: 'no NodeInfo' })
  })
})

describe('the schedule', () => {
  it('has ten attempts with the same bytes', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith(400)
    const base = [256, 625, 1296, 2401, 4096, 6561, 10000, 14641, 20736]

    for (const [index, least] of base.entries()) {
      await run(other.id)
      const [delivery] = await other.deliveries()
      const seconds = await secondsUntil(delivery?.dueAt)
      expect(seconds).toBeGreaterThan(least - 5)
      expect(seconds).toBeLessThanOrEqual(least + 29 * (index + 2))
      await later(other.id)
    }
    await run(other.id)

    expect(other.received).toHaveLength(10)
    expect(new Set(other.received.map(({ body }) => body)).size).toBe(1)
    expect(await other.deliveries()).toMatchObject([
      { state: 'dead', attempts: 10, lastStatus: 400, lastFault: 'refused', diedAt: expect.any(Date) },
    ])
  })

  it('has twenty attempts for a refused contact', async () => {
    const other = await otherPod()
    const bob = await other.person()
    const entity: Entity = {
      type: 'contact',
      author: ann.address,
      recipient: bob.address,
      following: true,
      sharing: true,
      blocking: false,
    }
    await writeMessage(pod, { senderId: ann.id, record: 'contact', entity, people: [bob.row] })
    other.respondWith(400, `/receive/users/${bob.guid}`)

    for (let tries = 0; tries < 19; tries += 1) {
      await run(other.id)
      await later(other.id)
    }
    expect(await other.deliveries()).toMatchObject([{ state: 'waiting', attempts: 19 }])
    await run(other.id)

    expect(other.received).toHaveLength(20)
    expect(await other.deliveries()).toMatchObject([{ state: 'dead', attempts: 20 }])
  })

  it('keeps deliveries to a pod that is down for thirteen days, and sends them in order when it is back', async () => {
    const other = await otherPod()
    const messages: OutboundMessageRow[] = []
    for (let n = 0; n < 30; n += 1) {
      messages.push(await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] }))
    }
    other.respondWith(503)
    for (let probe = 0; probe < 52; probe += 1) {
      await run(other.id)
      await daysPass(other.id, 0.25)
    }
    expect(other.received).toHaveLength(52)
    expect((await other.deliveries()).map(({ attempts }) => attempts)).toEqual(messages.map(() => 0))

    other.respondWith(202)
    await run(other.id, { maxConcurrent: 1 })

    const envelopes = await pod
      .db<OutboundMessageRow>('outbound_messages')
      .whereIn(
        'id',
        messages.map(({ id }) => id),
      )
      .orderBy('id')
    expect(other.received.slice(52).map(({ body }) => body)).toEqual(envelopes.map(({ envelope }) => envelope))
    expect(await other.deliveries()).toEqual([])
  })

  it('gives deliveries up after fourteen days, and sends younger ones when the pod answers a check', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith(503)
    await run(other.id)
    await daysPass(other.id, 10)
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    await daysPass(other.id, 5)
    expect(await giveUpDeliveries(pod.db, 10)).toBe(2)
    expect(await other.deliveries()).toMatchObject([1, 2].map(() => ({ state: 'dead', lastFault: 'pod_asleep' })))

    const row = await other.row()
    await savePodCheck(pod.db, row, { status: 'no_errors', error: null }, new Date())

    expect((await other.deliveries()).map(({ state }) => state)).toEqual(['dead', 'waiting'])
    other.respondWith(202)
    await run(other.id)
    expect(await other.deliveries()).toMatchObject([{ state: 'dead' }])
  })

  it('counts no attempt for deliveries that wait behind a failing pod', async () => {
    const other = await otherPod()
    for (let n = 0; n < 30; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    other.respondWith(500)

    await run(other.id)
    await run(other.id) // it is not its time yet

    expect(other.received).toHaveLength(1)
    const attempts = (await other.deliveries()).map((delivery) => delivery.attempts)
    expect(attempts).toEqual([1, ...Array.from({ length: 29 }, () => 0)])
  })
})

describe('the order', () => {
  it('is that of writing for the messages of one person, even if one answer is slow', async () => {
    const other = await otherPod()
    const bob = await other.person()
    const contact: Entity = {
      type: 'contact',
      author: ann.address,
      recipient: bob.address,
      following: true,
      sharing: true,
      blocking: false,
    }
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] }) // it answers
    await writeMessage(pod, { senderId: ann.id, record: 'contact', entity: contact, people: [bob.row] })
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    await createUser(pod, { username: 'cem', password: 'the password of cem' })
    const cem = await Person.byAddress(pod.db, 'cem@pod.example').throwIfNotFound()
    await writeMessage(pod, {
      senderId: cem.id,
      entity: { ...post(), author: cem.address } as Entity,
      pods: [other.id],
    })
    const ends: string[] = []
    let answerContact: () => void = () => {}
    pod.fakePods.script(`${other.host}/receive/users/${bob.guid}`, (request, response) => {
      answerContact = () => {
        ends.push('contact')
        response.writeHead(202).end()
      }
      request.resume()
    })
    pod.fakePods.script(`${other.host}/receive/public`, (request, response) => {
      request.resume().on('end', () => {
        ends.push('public')
        response.writeHead(202).end()
        if (ends.length === 2) answerContact()
      })
    })

    await run(other.id)

    // The first one, the one of another person, and only then the follower of the contact.
    expect(ends).toEqual(['public', 'public', 'contact', 'public'])
  })

  it('is that of writing, and all deliveries arrive in one run', async () => {
    const other = await otherPod()
    const messages: OutboundMessageRow[] = []
    for (let n = 0; n < 50; n += 1) {
      messages.push(await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] }))
    }

    await run(other.id, { maxConcurrent: 1 })

    const envelopes = await pod
      .db<OutboundMessageRow>('outbound_messages')
      .whereIn(
        'id',
        messages.map(({ id }) => id),
      )
      .orderBy('id')
    expect(other.received.map(({ body }) => body)).toEqual(envelopes.map(({ envelope }) => envelope))
  })

  it('never lets a retraction overtake its target', async () => {
    const other = await otherPod()
    const entity = post()
    const first = await writeMessage(pod, { senderId: ann.id, entity, pods: [other.id] })
    other.respondWith(400)
    await run(other.id)
    other.respondWith(202)
    const second = await writeMessage(pod, {
      senderId: ann.id,
      entity: retraction(entity.guid),
      guid: entity.guid,
      verb: 'retract',
      pods: [other.id],
    })
    const unrelated = await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    await run(other.id)

    expect((await other.deliveries()).map(({ messageId }) => messageId)).toEqual([first.id, second.id])
    expect(other.received.at(-1)?.body).toBe(
      (await pod.db<OutboundMessageRow>('outbound_messages').where({ id: unrelated.id }).first())?.envelope,
    )
    const [creation, taking] = await other.deliveries()
    expect(taking?.dueAt).toEqual(creation?.dueAt)
    await later(other.id)
    await run(other.id)
    const envelopes = await pod
      .db<OutboundMessageRow>('outbound_messages')
      .whereIn('id', [first.id, second.id])
      .orderBy('id')
    expect(other.received.slice(-2).map(({ body }) => body)).toEqual(envelopes.map(({ envelope }) => envelope))
    expect(await other.deliveries()).toEqual([])
  })

  it('is messages of local users first, then relays, then participations', async () => {
    const other = await otherPod()
    const priorities = [2, 1, 0, 1, 0]
    const messages: OutboundMessageRow[] = []
    for (const priority of priorities) {
      messages.push(await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id], priority }))
    }

    await run(other.id, { maxConcurrent: 1 })

    const order = [2, 4, 1, 3, 0].map((place) => messages[place]?.id)
    expect(await sentTo(other)).toEqual(order)
  })

  it('lets messages of local users wait for few relays while more of them are written', async () => {
    const other = await otherPod()
    const recordedLog = openRecordedLog()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    for (let count = 0; count < 20; count += 1)
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id], priority: 1 })

    await run(other.id, {}, { ...pod, log: recordedLog.log })

    const rounds = recordedLog.entries().filter(({ msg }) => msg === 'delivery round finished')
    expect(rounds.map(({ deliveries }) => deliveries)).toEqual([1, 8, 8, 4])
  })

  it('sends messages of local users after the relay that they refer to', async () => {
    const other = await otherPod()
    const relay = { ...retraction(newGuid()), target_type: 'Comment' } as Entity
    const guid = newGuid()
    const first = await writeMessage(pod, { senderId: ann.id, entity: relay, guid, pods: [other.id], priority: 1 })
    const second = await writeMessage(pod, {
      senderId: ann.id,
      entity: retraction(guid),
      guid,
      verb: 'retract',
      pods: [other.id],
    })
    const third = await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    await run(other.id, { maxConcurrent: 1 })

    expect(await sentTo(other)).toEqual([third.id, first.id, second.id])
  })

  /** The messages that a pod has got, in order. */
  async function sentTo({ received: got }: RecordingPod): Promise<readonly (number | undefined)[]> {
    const messages = await pod.db<OutboundMessageRow>('outbound_messages').select('id', 'envelope')
    return got.map(({ body }) => messages.find(({ envelope }) => envelope === body)?.id)
  }

  it('holds back only the deliveries that refer to a pending one', async () => {
    const other = await otherPod()
    const [bob, eve] = [await other.person(), await other.person()]
    const entity = post()
    await writeMessage(pod, { senderId: ann.id, entity, people: [bob.row, eve.row] })
    other.respondWith(400, `/receive/users/${bob.guid}`)
    const comment: Entity = {
      type: 'comment',
      author: ann.address,
      guid: newGuid(),
      parent_guid: entity.guid,
      text: 'a comment',
      created_at: new Date(),
    }
    await writeMessage(pod, { senderId: ann.id, record: 'comment', entity: comment, people: [bob.row, eve.row] })

    await run(other.id)

    const paths = other.received.map(({ path }) => path)
    expect(paths.filter((path) => path.endsWith(bob.guid))).toHaveLength(1)
    expect(paths.filter((path) => path.endsWith(eve.guid))).toHaveLength(2)
    expect(await other.deliveries()).toMatchObject([{ attempts: 1 }, { attempts: 0 }])
  })

  it('is kept between one sender and one recipient, not between senders', async () => {
    const other = await otherPod()
    const bob = await other.person()
    const contact = (author: string, sharing: boolean): Entity => {
      return { type: 'contact', author, recipient: bob.address, following: sharing, sharing, blocking: false }
    }
    const contactMessage = { record: 'contact', guid: bob.guid, people: [bob.row] } as const
    await createUser(pod, { username: 'ben', password: 'the password of ben' })
    const ben = await Person.byAddress(pod.db, 'ben@pod.example').throwIfNotFound()
    await writeMessage(pod, { ...contactMessage, senderId: ann.id, entity: contact(ann.address, true) })
    other.respondWith(400, `/receive/users/${bob.guid}`)
    await run(other.id)
    other.respondWith(202, `/receive/users/${bob.guid}`)
    const stops = await writeMessage(pod, { ...contactMessage, senderId: ann.id, entity: contact(ann.address, false) })
    await writeMessage(pod, { ...contactMessage, senderId: ben.id, entity: contact(ben.address, true) })

    await run(other.id)

    expect(other.received).toHaveLength(2)
    expect(await other.deliveries()).toMatchObject([{ attempts: 1 }, { messageId: stops.id, attempts: 0 }])
  })
})

describe('a delivery run', () => {
  it('is the only one of its pod', async () => {
    const other = await otherPod()
    for (let n = 0; n < 20; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    await Promise.all(Array.from({ length: 5 }, () => run(other.id)))

    expect(other.received).toHaveLength(20)
    expect(await other.row()).toMatchObject({ drainedBy: null, drainedUntil: null })
  })

  it('continues after a crashed process when its lease expires', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    const drainedBy = '00000000-0000-4000-8000-000000000000'
    await pod
      .db('pods')
      .where({ id: other.id })
      .update({ drainedBy, drainedUntil: pod.db.raw(`now() + interval '1 minute'`) })

    await run(other.id)
    expect(other.received).toEqual([])

    await pod
      .db('pods')
      .where({ id: other.id })
      .update({ drainedUntil: pod.db.raw(`now() - interval '1 second'`) })
    await run(other.id)
    expect(other.received).toHaveLength(1)
  })

  it('sends up to four deliveries at a time, and one until the first has arrived', async () => {
    const other = await otherPod()
    for (let n = 0; n < 9; n += 1) {
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id], priority: 1 })
    }
    let [under, most] = [0, [] as number[]]
    pod.fakePods.script(`${other.host}/receive/public`, (request, response) => {
      under += 1
      most = [...most, under]
      request.resume().on('end', () =>
        setImmediate(() => {
          under -= 1
          response.writeHead(202).end()
        }),
      )
    })

    await run(other.id)

    expect(most).toHaveLength(9)
    expect(Math.max(...most.slice(0, 1))).toBe(1)
    expect(Math.max(...most)).toBeLessThanOrEqual(4)
    expect(Math.max(...most)).toBeGreaterThan(1)
  })

  it('sends several deliveries at a time once the pod has answered, even with a refusal', async () => {
    const other = await otherPod()
    for (let n = 0; n < 9; n += 1) {
      await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id], priority: 1 })
    }
    let [under, most] = [0, 0]
    pod.fakePods.script(`${other.host}/receive/public`, (request, response) => {
      under += 1
      most = Math.max(most, under)
      request.resume().on('end', () =>
        setImmediate(() => {
          under -= 1
          response.writeHead(400).end()
        }),
      )
    })

    await run(other.id)

    expect(most).toBeGreaterThan(1)
    expect((await other.deliveries()).map(({ attempts }) => attempts)).toEqual(Array.from({ length: 9 }, () => 1))
    expect(await other.row()).toMatchObject({ answeredAt: expect.any(Date), participationAt: null })
  })

  it('starts no further delivery after the pod has failed', async () => {
    const other = await otherPod()
    for (let n = 0; n < 15; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    let asked = 0
    pod.fakePods.script(`${other.host}/receive/public`, (request, response) => {
      asked += 1
      request.resume()
      response.writeHead(asked === 1 ? 202 : 500).end()
    })

    await run(other.id)

    expect(asked).toBeLessThanOrEqual(1 + 4)
    expect(await other.deliveries()).toHaveLength(14)
    expect(await other.row()).toMatchObject({ failures: 1, status: 'http_failed', drainedBy: null })
  })

  it('leaves blocked and sleeping pods alone', async () => {
    const blocked = await otherPod({ blockedAt: new Date() })
    const asleep = await otherPod({ offlineSince: daysAgo(15) })
    const tired = await otherPod({ offlineSince: daysAgo(13) })
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [blocked.id, asleep.id, tired.id] })

    for (const { id } of [blocked, asleep, tired]) await run(id)

    expect([blocked, asleep, tired].map(({ received: got }) => got.length)).toEqual([0, 0, 1])
  })

  it('sends a blocked pod retractions, and not what waits beside them', async () => {
    const blocked = await otherPod({ blockedAt: new Date() })
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [blocked.id] })
    await writeMessage(pod, { senderId: ann.id, entity: post(), verb: 'retract', pods: [blocked.id] })

    await run(blocked.id)

    expect(blocked.received).toHaveLength(1)
    expect(await blocked.deliveries()).toHaveLength(1)
  })

  it('from the queue outbound is for proven pods; others are moved to the slow queue', async () => {
    const [fresh, provenPod] = [await otherPod(), await otherPod({ lastSuccessAt: new Date() })]
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [fresh.id, provenPod.id] })

    for (const { id } of [fresh, provenPod]) {
      await deliver(pod, [id], { queue: 'outbound', signal: new AbortController().signal })
    }

    expect([fresh, provenPod].map(({ received: got }) => got.length)).toEqual([0, 1])
    expect((await pod.jobs.counts('outbound-slow')).waiting).toBe(1)
    expect((await pod.jobs.counts('outbound')).waiting).toBe(0)
  })

  it('from the queue outbound yields when too many pods are silent, and moves to the slow queue', async () => {
    const pods = await Promise.all([1, 2, 3].map(() => otherPod({ lastSuccessAt: new Date() })))
    for (const each of pods) each.respondWith('nothing')
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: pods.map(({ id }) => id) })
    const slow = (await pod.jobs.counts('outbound-slow')).waiting
    const stop = new AbortController()

    const limits = { maxConcurrentSilentPods: 1, silentAfterMs: 100 }
    const draining = pods.map(({ id }) => deliver(pod, [id], { queue: 'outbound', signal: stop.signal, limits }))
    await vi.waitFor(async () => expect((await pod.jobs.counts('outbound-slow')).waiting).toBe(slow + 2), {
      interval: 10,
    })
    stop.abort(new Error('the process ends'))
    await Promise.all(draining)

    // A request that is given up early may not have arrived.
    expect(Math.max(...pods.map(({ received: got }) => got.length))).toBeLessThanOrEqual(1)
    const rows = await Promise.all(pods.map((each) => each.row()))
    expect(rows.filter(({ lastSuccessAt }) => lastSuccessAt === null)).toHaveLength(2)
    for (const row of rows) expect(row).toMatchObject({ failures: 0, offlineSince: null, drainedBy: null })
    expect(await pods[0]?.deliveries()).toMatchObject([{ state: 'waiting', attempts: 0 }])
  })

  it('from the queue outbound does not yield while few pods are silent', async () => {
    const other = await otherPod({ lastSuccessAt: new Date() })
    other.respondWith('nothing')
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

    const limits = { maxConcurrentSilentPods: 1, silentAfterMs: 10, exchangeMs: 200 }
    await deliver(pod, [other.id], { queue: 'outbound', signal: new AbortController().signal, limits })

    expect(await other.row()).toMatchObject({ failures: 1, status: 'net_failed' })
  })

  it('is enqueued again after the others when its time is over', async () => {
    const other = await otherPod()
    for (let n = 0; n < 3; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    const waiting = (await pod.jobs.counts('outbound-slow')).waiting

    await run(other.id, { runMs: 0.001 })

    expect(other.received.length).toBeLessThanOrEqual(1)
    expect(await other.row()).toMatchObject({ drainedBy: null })
    expect((await pod.jobs.counts('outbound-slow')).waiting).toBe(waiting + 1)
  })

  it('ends without a failure when the queue does not answer, and its deliveries stay due', async () => {
    const other = await otherPod()
    for (let n = 0; n < 3; n += 1) await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    const { log, entries } = openRecordedLog()
    const addEach = () => Promise.reject(new QueueUnavailable('The queue did not answer within 1000 ms.'))

    await run(other.id, { runMs: 0.001 }, { ...pod, log, jobs: { ...pod.jobs, addEach } })

    expect(entries()).toContainEqual(expect.objectContaining({ msg: 'deliveries not enqueued', pods: 1 }))
    await pod
      .db('deliveries')
      .where({ podId: other.id })
      .update({ dueAt: daysAgo(1) })
    expect((await findOverduePods(pod.db, 100)).map(({ podId }) => podId)).toContain(other.id)
  })

  it('a stopped delivery run counts no attempt for unfinished deliveries', async () => {
    const other = await otherPod()
    await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })
    const stop = new AbortController()
    pod.fakePods.script(`${other.host}/receive/public`, () => stop.abort(new Error('the process ends')))

    await deliver(pod, [other.id], { queue: 'outbound-slow', signal: stop.signal })

    expect(await other.deliveries()).toMatchObject([{ state: 'waiting', attempts: 0 }])
    expect(await other.row()).toMatchObject({ failures: 0, offlineSince: null, drainedBy: null })
  })
})

it('a delivery to a private address is refused, unless the settings allow it', async () => {
  const other = await otherPod()
  await writeMessage(pod, { senderId: ann.id, entity: post(), pods: [other.id] })

  await run(other.id, {}, { ...pod, remotePods: pod.fakePods.remotePods({ allowPrivate: 'none' }) })

  expect(other.received).toEqual([])
  expect(await other.deliveries()).toMatchObject([{ state: 'dead', lastFault: 'not_allowed' }])
  expect(await other.row()).toMatchObject({ status: 'unknown_error', failures: 0 })
})

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * 24 * 60 * 60 * 1_000)
}
