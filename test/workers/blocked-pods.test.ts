import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { setPodRule, unblockHost } from '../../src/domain/moderation/pods/pod-rules.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { pausePod, resumePod } from '../../src/domain/operations/pods.js'
import { outboundHandlers, outboundSlowHandlers } from '../../workers/handlers/outbound.js'
import { inProcessDelivery } from '../../workers/in-process-runs/in-process-handlers.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod, type RecordingPod, writeMessage } from '../support/federation/recording-pod.js'
import { type TestPerson, viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const reason = 'For a test'

let fakePods: FakePods
let opened: TestPod
let workers: RunningWorkers
let bob: TestPerson
let viewer: Viewer
let other: RecordingPod
let hosts = 0
beforeAll(async () => {
  fakePods = await startFakePods()
  opened = await buildPod({ fakePods, process: 'worker' })
  bob = (await opened.people('bob')).bob
  viewer = await viewerOf(opened.pod, bob)
  workers = startTestWorkers(opened.pod, {
    handlers: { outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers },
    queues: ['outbound', 'outbound-slow'],
    inProcessDelivery,
  })
})
afterAll(async () => {
  await workers.close()
  await opened.close()
  await fakePods.close()
})
/** A pod with a person who shares with bob. */
beforeEach(async () => {
  hosts += 1
  other = await addRecordingPod(fakePods, opened.pod, `r${hosts}.example:3000`, { lastSuccessAt: new Date() })
  const { row } = await other.person()
  await opened.pod.db('contacts').delete()
  await opened.pod.db('contacts').insert({ userId: viewer.userId, personId: row.id, sharing: true, receiving: true })
})

const hostOf = () => ({ host: `r${hosts}.example`, port: 3_000 })
const block = () => {
  const { host, port } = hostOf()
  return setPodRule(
    opened.pod,
    COMMAND_ACTOR,
    { domain: host, port, subdomains: false, state: 'blocked' },
    { reason, confirm: host },
  )
}
const unblock = () => unblockHost(opened.pod, COMMAND_ACTOR, hostOf(), { reason })
const idle = () => untilIdle(opened.pod, undefined, ['outbound', 'outbound-slow'])

async function write(text: string): Promise<string> {
  const answer = await bob.post('/api/v1/posts', { body: text, public: true })
  expect(answer.statusCode).toBe(200)
  return answer.json().guid
}

/** The kind and guid of each message that has arrived, in order. */
function listArrived(): readonly string[] {
  return other.received.map(({ body }) => {
    const [, data = ''] = /<me:data[^>]*>([^<]+)</.exec(body) ?? []
    const entity = Buffer.from(data, 'base64url').toString()
    const [, kind = ''] = /^<(\w+)>/.exec(entity) ?? []
    const [, guid = ''] = /<(?:target_)?guid>([^<]+)</.exec(entity) ?? []
    return `${kind} ${guid}`
  })
}

/** Deliveries to a blocked pod as if they waited for so many days. */
async function blockWithWaiting(days: number): Promise<readonly string[]> {
  const guids = Array.from({ length: 5 }, newGuid)
  for (const guid of guids) {
    const author = { author: 'bob@pod.example', guid, created_at: new Date(), text: 'It waits' }
    const entity = { type: 'status_message', ...author, photos: [], public: true } as const
    await writeMessage(opened.pod, { senderId: viewer.personId, entity, pods: [other.id] })
  }
  await block()
  await opened.pod
    .db('deliveries')
    .where({ podId: other.id })
    .update({ createdAt: opened.pod.db.raw('now() - make_interval(days => ?)', [days]) })
  return guids
}

it('messages that wait for a blocked pod are delivered when it is unblocked after 13 days', async () => {
  const guids = await blockWithWaiting(13)
  expect((await other.deliveries()).map(({ lastFault }) => lastFault)).toEqual(guids.map(() => 'pod_blocked'))

  await unblock()
  await idle()

  expect(listArrived()).toEqual(guids.map((guid) => `status_message ${guid}`))
})

it('messages that wait for a blocked pod are not delivered after 15 days; later ones are', async () => {
  await blockWithWaiting(15)

  await unblock()
  const later = await write('Written later')
  await idle()

  expect(listArrived()).toEqual([`status_message ${later}`])
})

it('a post that is deleted while its pod is blocked is retracted there, and nothing else arrives', async () => {
  const before = await write('Before the block')
  await idle()
  expect(listArrived()).toEqual([`status_message ${before}`])
  await block()
  await write('During the block')

  expect((await bob.delete(`/api/v1/posts/${before}`)).statusCode).toBe(204)

  await expect.poll(listArrived).toContain(`retraction ${before}`)
  expect(listArrived()).toEqual([`status_message ${before}`, `retraction ${before}`])
})

it('posts wait for a paused pod without attempts, and arrive in order when it is resumed', async () => {
  const target = { id: other.id, ...hostOf() }
  await pausePod(opened.pod, COMMAND_ACTOR, target, { reason })
  const posts = [await write('One'), await write('Two'), await write('Three')]
  await expect.poll(async () => (await other.deliveries()).length).toBe(3)
  const waiting = await other.deliveries()
  expect(waiting.map(({ attempts, state }) => [attempts, state])).toEqual(posts.map(() => [0, 'waiting']))
  expect(await other.row()).toMatchObject({ failures: 0 })
  expect(listArrived()).toEqual([])

  await resumePod(opened.pod, COMMAND_ACTOR, target, { reason })
  await idle()

  expect(listArrived()).toEqual(posts.map((guid) => `status_message ${guid}`))
})
