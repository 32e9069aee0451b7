import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import {
  discoverMentionedJob,
  discoverPersonJob,
  discoverSearchedJob,
  type FetchRequest,
  fetchEntityJob,
  fetchLinkedJob,
} from '../../src/jobs/definitions.js'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import { openFetchHandlers } from '../../workers/handlers/fetch.js'
import type { RunningWorkers } from '../../workers/start-workers.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { hostOf } from '../support/people/remote-people.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../support/queues/test-workers.js'

const WEBFINGER = '/.well-known/webfinger'

describe.each(queueBackends)('the fetch queue, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: QueuePod
  let workers: RunningWorkers[] = []
  let hosts = 0

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = { ...(await stores.openPod()), remotePods: fakePods.remotePods(), crypto: fixedKeyCrypto() }
  })
  afterAll(async () => {
    await stores.close()
    await fakePods.close()
  })
  beforeEach(async () => {
    await stores.emptyQueue()
    await pod.db.raw('truncate people, pods, outbox cascade')
  })
  afterEach(async () => {
    await Promise.all(workers.map((worker) => worker.close()))
    workers = []
  })

  /** Each of these represents a process. */
  function work(...pods: readonly QueuePod[]): void {
    workers = pods.map((one) => startTestWorkers(one, { queues: ['fetch'], handlers: { fetch: openFetchHandlers() } }))
  }

  function newPerson(): FakePerson {
    hosts += 1
    return fakePods.person(`quin@w${hosts}.example`)
  }

  const requestsTo = (person: FakePerson) =>
    fakePods.requests
      .filter((request) => request.startsWith(`${hostOf(person)}/`))
      .map((request) => request.slice(hostOf(person).length))
  const listKnown = () => pod.db('people').orderBy('address').pluck('address')
  const listFailed = async () =>
    (await pod.jobs.failed('fetch', 0, 10)).map(({ failedReason, attemptsMade }) => ({ failedReason, attemptsMade }))

  function discover({ address }: Pick<FakePerson, 'address'>): Promise<void> {
    return pod.jobs.add(discoverPersonJob, { address }, { deduplicationKey: `person:${address}` })
  }

  function fetchPost(fetchRequest: FetchRequest): Promise<void> {
    return pod.jobs.add(fetchEntityJob, fetchRequest)
  }

  function servePost(author: FakePerson, fields: Partial<StatusMessageEntity> = {}): FetchRequest {
    const guid = newGuid()
    fakePods.serve(author, {
      type: 'status_message',
      author: author.address,
      guid,
      created_at: new Date(),
      public: true,
      text: 'Hello',
      photos: [],
      ...fields,
    })
    return { type: 'post', guid, from: author.address, depth: 0 }
  }

  it('discovers a person once for any number of concurrent requests in any number of processes', async () => {
    const quin = newPerson()
    await Promise.all(Array.from({ length: 50 }, () => discover(quin)))
    work(pod, { ...pod, remotePods: fakePods.remotePods() })
    await untilIdle(pod)

    expect(await listKnown()).toEqual([quin.address])
    expect(requestsTo(quin)).toHaveLength(2)
  })

  it.each([
    [
      'another subject',
      (quin: FakePerson) => JSON.stringify({ ...fakePods.webFinger(quin), subject: 'acct:remy@r.example' }),
    ],
    ['no WebFinger', () => undefined],
  ])('tries ten times again when there is %s, and gives up with nothing stored', async (_what, write) => {
    const quin = newPerson()
    fakePods.script(`${hostOf(quin)}${WEBFINGER}`, (_request, response) => {
      const text = write(quin)
      response.writeHead(text === undefined ? 404 : 200).end(text)
    })
    await discover(quin)
    work(pod)
    await untilIdle(pod)

    expect(requestsTo(quin)).toHaveLength(11)
    expect(await listFailed()).toEqual([{ failedReason: 'DiscoveryFailed', attemptsMade: 11 }])
    expect(await pod.db('people')).toEqual([])
    expect(await pod.db('pods')).toEqual([])
  })

  it('succeeds when an unreachable pod responds again', async () => {
    const quin = newPerson()
    fakePods.script(`${hostOf(quin)}${WEBFINGER}`, (_request, response) => {
      if (requestsTo(quin).length < 3) return void response.destroy()
      response.end(JSON.stringify(fakePods.webFinger(quin)))
    })
    await discover(quin)
    work(pod)
    await untilIdle(pod)

    expect(await listKnown()).toEqual([quin.address])
    expect(await listFailed()).toEqual([])
  })

  it('fetches a post, its author, the persons it mentions and the posts it links to', async () => {
    const [quin, remy, sam] = [newPerson(), newPerson(), newPerson()]
    const linked = servePost(remy, { text: `And I link to diaspora://${quin.address}/post/${newGuid()}` })
    const fetchRequest = servePost(quin, {
      text: `@{${sam.address}}, look at diaspora://${remy.address}/post/${linked.guid}`,
    })
    await fetchPost(fetchRequest)
    work(pod)
    await untilIdle(pod, 15_000, ['fetch'])

    expect(await pod.db('posts').orderBy('id').pluck('guid')).toEqual([fetchRequest.guid, linked.guid])
    expect(await listKnown()).toEqual([quin, remy, sam].map(({ address }) => address).sort())
    const mentions = pod.db('mentions').join('posts', 'posts.id', 'postId').join('people', 'people.id', 'personId')
    expect(await mentions.select('posts.guid', 'address')).toEqual([{ guid: fetchRequest.guid, address: sam.address }])
    expect(await pod.db('outbox').where({ queue: 'fetch' })).toEqual([])
    expect(await listFailed()).toEqual([])
  })

  it.each([
    [
      'a mentioned person',
      (transaction: Transaction) =>
        enqueueJob(pod, transaction, discoverMentionedJob, { address: 'ghost@nowhere.example' }),
    ],
    [
      'something linked',
      (transaction: Transaction) =>
        enqueueJob(pod, transaction, fetchLinkedJob, {
          type: 'post',
          guid: newGuid(),
          from: 'ghost@nowhere.example',
          depth: 1,
        }),
    ],
  ])('lets %s be when it cannot be found', async (_what, enqueue) => {
    const before = fakePods.requests.length
    await pod.db.transaction(enqueue)
    work(pod)
    await untilIdle(pod)

    expect(await listFailed()).toEqual([])
    expect(await pod.db('outbox')).toEqual([])
    expect(fakePods.requests.length).toBeLessThanOrEqual(before + 1)
  })

  it('gives up on a post that cannot be fetched after ten more attempts', async () => {
    const quin = newPerson()
    const fetchRequest = { type: 'post', guid: newGuid(), from: quin.address, depth: 0 } as const
    await fetchPost(fetchRequest)
    work(pod)
    await untilIdle(pod)

    expect(requestsTo(quin).filter((path) => path.startsWith('/fetch/'))).toHaveLength(11)
    expect(await listFailed()).toEqual([{ failedReason: 'NotFetchable', attemptsMade: 11 }])
  })

  it('is not filled by hosts that never answer: half of its slots stay for known pods and for searches', async () => {
    const [known, sought] = [newPerson(), newPerson()]
    await pod.db('pods').insert({ host: hostOf(known), port: 443, ssl: true })
    const held: (() => void)[] = []
    const slow = Array.from({ length: 20 }, newPerson)
    for (const person of slow) {
      const path = `${hostOf(person)}${WEBFINGER}`
      fakePods.script(path, (_request, response) => held.push(() => response.writeHead(404).end()))
    }
    await Promise.all(slow.map((person) => discover(person)))
    work(pod)
    await vi.waitFor(() => expect(held.length).toBeGreaterThan(0))

    await discover(known)
    await pod.jobs.add(discoverSearchedJob, { address: sought.address })
    const both = [known.address, sought.address].sort()
    await vi.waitFor(async () => expect(await pod.db('people').orderBy('address').pluck('address')).toEqual(both))

    expect(held.length).toBeLessThanOrEqual(8)
    for (const person of slow) {
      fakePods.script(`${hostOf(person)}${WEBFINGER}`, (_request, response) => response.writeHead(404).end())
    }
    for (const answer of held) answer()
  })

  it('is not filled by a slow pod', async () => {
    const slow = newPerson()
    const quick = newPerson()
    const held: (() => void)[] = []
    fakePods.script(`${hostOf(slow)}${WEBFINGER}`, (_request, response) =>
      held.push(() => response.writeHead(404).end()),
    )
    const names = Array.from({ length: 40 }, (_, index) => `s${index}@${hostOf(slow)}`)
    await Promise.all(names.map((address) => discover({ address })))
    work(pod)
    await vi.waitFor(() => expect(held.length).toBeGreaterThan(0))

    await discover(quick)
    await vi.waitFor(async () => expect(await listKnown()).toEqual([quick.address]))

    expect(held.length).toBeLessThanOrEqual(4)
    fakePods.script(`${hostOf(slow)}${WEBFINGER}`, (_request, response) => response.writeHead(404).end())
    for (const answer of held) answer()
  })
})

type Transaction = Parameters<typeof enqueueJob>[1]
