import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { changeRole } from '../../src/domain/moderation/change-role.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { readTrace } from '../../src/domain/operations/traces.js'
import { receiveBatch } from '../../src/federation/inbound/receive-batch.js'
import type { ObservedWorker } from '../../src/jobs/bullmq/observed-worker.js'
import { countDeadLetters } from '../../src/jobs/dead-letters/count-dead-letters.js'
import type { DeadLetterFilter } from '../../src/jobs/dead-letters/dead-letter.js'
import { listDeadLetters } from '../../src/jobs/dead-letters/find-dead-letters.js'
import { showDeadLetter } from '../../src/jobs/dead-letters/show-dead-letter.js'
import { receivePublicJob } from '../../src/jobs/definitions.js'
import { sweepAllNow } from '../../src/jobs/outbox/sweep-rows.js'
import { SIGNER_LIMITS } from '../../src/jobs/waiting/limits.js'
import { Person } from '../../src/persistence/models/person.js'
import type { StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import type { PodCrypto } from '../../src/services/pod-crypto.js'
import { relayHandlers } from '../../workers/handlers/outbound.js'
import { openInboundLoad } from '../../workers/inbound-load.js'
import { createInboundRunner } from '../../workers/inbound-runner.js'
import { OutOfTime } from '../../workers/job-outcome.js'
import { createSuspectRunner } from '../../workers/suspects.js'
import { sweep } from '../../workers/sweeper.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { openBrowser } from '../support/browser/scriptless-browser.js'
import { addPost } from '../support/databases/rows.js'
import { postBy } from '../support/federation/entities.js'
import { envelopeOf, signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { hostOf } from '../support/people/remote-people.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { type InboundPod, type InboundPodOptions, startInboundPod } from '../support/pods/inbound-pod.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { dropDeadLetters, replayDeadLetters } from '../support/queues/change-dead-letters.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers } from '../support/queues/test-workers.js'

function commentBy(author: FakePerson, parentGuid: string, text = 'Nice') {
  return signedBy(author, {
    type: 'comment',
    author: author.address,
    guid: newGuid(),
    parent_guid: parentGuid,
    text,
    created_at: new Date('2024-05-06T07:08:09Z'),
  })
}

describe.each(queueBackends)('inbound messages, with the queue in $store', (backend) => {
  let stores: TestStores
  let own: QueuePod
  let fakePods: FakePods
  const open: { close(): Promise<unknown> }[] = []

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    own = await stores.openPod()
  })
  afterAll(async () => {
    await stores.close()
    await fakePods.close()
  })
  afterEach(async () => {
    for (const each of open.splice(0).reverse()) await each.close()
    await own.db.raw('truncate people, pods, tags, outbox, waiting cascade')
    await stores.emptyQueue()
  })

  async function start(options: Omit<InboundPodOptions, 'fakePods' | 'stores'> = {}): Promise<InboundPod> {
    const pod = await startInboundPod({ fakePods, stores, ...options })
    open.push(pod)
    return pod
  }

  /** A remote person known to this pod, on their own pod. */
  let hosts = 0
  async function addKnownPerson(pod: InboundPod, name = 'quin'): Promise<FakePerson> {
    const person = newRemotePerson(name)
    await pod.addRemotePerson(person)
    return person
  }

  function newRemotePerson(name = 'quin'): FakePerson {
    hosts += 1
    return fakePods.person(`${name}@w${hosts}.example`)
  }

  const fetches = (person: FakePerson) =>
    fakePods.requests.filter((request) => request.startsWith(`${hostOf(person)}/fetch/`))
  const postGuids = (pod: InboundPod) => pod.db('posts').orderBy('guid').pluck('guid')
  const guidsOf = (posts: readonly StatusMessageEntity[]) => posts.map(({ guid }) => guid).sort()

  /** Public messages in one job, as the inbound endpoint packs concurrent ones. */
  async function pack(
    pod: InboundPod,
    envelopes: readonly string[],
    { trace, ...options }: { readonly priority?: number; readonly trace?: string } = {},
  ): Promise<void> {
    const messages = trace === undefined ? envelopes : envelopes.map((envelope) => ({ envelope, trace }))
    await pod.jobs.add(receivePublicJob, { acceptedAt: new Date().toISOString(), messages }, options)
  }

  /** The threads of the pod, which behave differently for these envelopes. */
  function cryptoWith(trap: (envelopes: readonly string[]) => Promise<void>): PodCrypto {
    const crypto = fixedKeyCrypto()
    return {
      ...crypto,
      async verifyEnvelopes(messages, keys) {
        await trap(messages.map(({ envelope }) => envelope))
        return crypto.verifyEnvelopes(messages, keys)
      },
    }
  }

  it('are stored as a row after the inbound endpoint has accepted them', async () => {
    const pod = await start()
    const quin = newRemotePerson()
    const post = postBy(quin)

    expect(await pod.postPublic(post, quin)).toBe(202)
    await pod.waitUntilIdle()

    expect(await pod.db('posts').select('guid', 'text')).toEqual([{ guid: post.guid, text: 'Hello' }])
    expect(await pod.rows('waiting')).toEqual([0])
  })

  it('are stored when they are private, also after they have waited for their sender', async () => {
    const pod = await start()
    const { alice } = await pod.people('alice')
    const quin = newRemotePerson()
    const post = postBy(quin, { public: false })

    expect(await pod.postPrivate(post, quin, alice)).toBe(202)
    expect(await pod.post(`/receive/users/${newGuid()}`, '{}')).toBe(404)
    await pod.waitUntilIdle()

    expect(await pod.db('posts').select('guid', 'public')).toEqual([{ guid: post.guid, public: false }])
    expect(await pod.rows('waiting')).toEqual([0])
  })

  it('have the trace of their request, to the relays and the log lines', async () => {
    const recorded = openRecordedLog()
    const queues = ['inbound', 'inbound-private', 'fetch', 'fetch-unproven', 'relay'] as const
    const pod = await start({ queues, handlers: { relay: relayHandlers }, log: recorded.log })
    const { alice } = await pod.people('alice')
    const alicePerson = await Person.query(pod.db).findOne({ guid: alice.account.guid }).throwIfNotFound()
    const post = await addPost(pod, alicePerson)
    const remy = await pod.addRemotePerson(newRemotePerson('remy'))
    await pod.db('participations').insert({ guid: newGuid(), postId: post.id, authorId: remy.id })
    const quin = newRemotePerson() // unknown: the message waits once
    const send = async (payload: string) => {
      const { headers } = await pod.app.inject({ method: 'POST', url: '/receive/public', payload })
      return String(headers['x-request-id'])
    }
    const admin = { ...COMMAND_ACTOR }

    const trace = await send(envelopeOf(quin, commentBy(quin, post.guid)))
    const forgedTrace = await send(
      envelopeOf({ ...remy, privateKey: quin.privateKey }, postBy({ ...quin, address: remy.address })),
    )
    await pod.waitUntilIdle()
    await vi.waitFor(async () => expect(await pod.db('outbound_messages')).toHaveLength(1), { timeout: 60_000 })

    expect(trace).toMatch(/^[0-9a-f]{32}$/)
    const steps = [
      { event: 'stored', type: 'comment' },
      { event: 'notified', count: 1 },
      { event: 'sent', type: 'comment', count: 1 },
      { event: 'delivery_waiting', pod: hostOf(remy) },
    ]
    expect(await readTrace(pod, admin, trace)).toMatchObject(steps)
    expect(await answerAndPage(pod, trace)).toMatchObject({
      answer: { id: trace, steps },
      page: ['stored comment', 'notified comment', 'sent comment', 'delivery waiting comment'],
    })
    expect(await readTrace(pod, admin, forgedTrace)).toMatchObject([{ event: 'rejected', detail: 'InvalidSignature' }])
    await arriveAt(pod, [remy.podId])
    expect((await readTrace(pod, admin, trace)).slice(3)).toMatchObject([
      { event: 'delivered', type: 'comment', count: 1, pod: hostOf(remy) },
    ])
    const lines = recorded.lines.filter((line) => line.includes(trace))
    expect(lines.filter((line) => line.includes('inbound batch processed'))).not.toEqual([])
    expect(lines.filter((line) => line.includes('inbound message answered'))).toHaveLength(1)
    await expect(readTrace(pod, admin, newGuid())).rejects.toMatchObject({ reason: 'trace_not_found' })
  })

  /** The result of the only delivery, as a worker stores it. */
  async function arriveAt(pod: InboundPod, podIds: readonly (number | null)[]): Promise<void> {
    const [message] = await pod.db('outbound_messages').select('id')
    await pod.db('deliveries').delete()
    await pod.db('message_results').insert({ messageId: message?.id, outcome: 'arrived', podIds })
  }

  /** A trace as the admin API answers it, and the rows of its page. */
  async function answerAndPage(pod: InboundPod, trace: string) {
    const { adm } = await pod.people('adm')
    await changeRole(pod, COMMAND_ACTOR, adm.account.guid, { role: 'admin', reason: 'For a test', confirm: 'adm' })
    const { accessToken } = await mintToken(pod, 'adm', { scopes: ['administration'], lifetime: 3_600 })
    const headers = { authorization: `Bearer ${accessToken}` }
    const browser = openBrowser(pod.app, pod.config.url)
    await browser.visit('/users/sign_in')
    await browser.submit({ username: 'adm', password: 'the password of adm' })
    const { body } = await browser.visit(`/admin/traces/${trace}`)
    const rows = body.matchAll(/<th scope="row">([^<]*)<\/th><td><time[^<]*<\/time><\/td><td>([^<]*)<\/td>/g)
    return {
      answer: (await pod.app.inject({ url: `/api/admin/v1/traces/${trace}`, headers })).json(),
      page: Array.from(rows, ([, step, type]) => `${step} ${type}`),
    }
  }

  it('are processed in one batch when they arrive at the same time', async () => {
    const sizes: number[] = []
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const pod = await start({
      crypto: cryptoWith(async (envelopes) => {
        sizes.push(envelopes.length)
        if (sizes.length <= 3) await held
      }),
    })
    const quin = await addKnownPerson(pod)
    const [first, ...rest] = Array.from({ length: 401 }, () => postBy(quin))
    if (first === undefined) throw new Error('There is no post.')
    await pack(pod, [envelopeOf(quin, first)])
    await vi.waitFor(() => expect(sizes).toEqual([1]))
    for (let from = 0; from < rest.length; from += 10) {
      await pack(
        pod,
        rest.slice(from, from + 10).map((post) => envelopeOf(quin, post)),
      )
    }
    await vi.waitFor(async () => expect(await pod.jobs.counts('inbound')).toMatchObject({ active: 41 }))
    await vi.waitFor(() => expect(sizes).toHaveLength(3))
    release()
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual(guidsOf([first, ...rest]))
    expect(Math.max(...sizes)).toBeGreaterThan(100)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(256)
  })

  it('do not wait for the batches of a source whose messages are packed apart', async () => {
    const sizes: number[] = []
    let release = () => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const pod = await start({
      crypto: cryptoWith(async (envelopes) => {
        sizes.push(envelopes.length)
        if (envelopes.length > 1) await held
      }),
    })
    const quin = await addKnownPerson(pod)
    const flood = Array.from({ length: 200 }, () => postBy(quin))
    const other = postBy(quin)
    for (let from = 0; from < flood.length; from += 20) {
      const envelopes = flood.slice(from, from + 20).map((post) => envelopeOf(quin, post))
      await pack(pod, envelopes, { priority: 10 })
    }
    await vi.waitFor(async () => expect(await pod.jobs.counts('inbound')).toMatchObject({ active: 10 }))

    await pack(pod, [envelopeOf(quin, other)])
    await vi.waitFor(async () => expect(await postGuids(pod)).toEqual(guidsOf([other])))
    release()
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual(guidsOf([...flood, other]))
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64)
  })

  it('of a batch are stored except for the failing one, which is retried alone', async () => {
    let isBroken = true
    let opened = 0
    const poison: string[] = []
    const pod = await start({
      crypto: cryptoWith(async (envelopes) => {
        opened += 1
        if (isBroken && envelopes.some((envelope) => poison.includes(envelope))) throw new Error('a thread has died')
      }),
    })
    const quin = await addKnownPerson(pod)
    const posts = Array.from({ length: 128 }, () => postBy(quin))
    const envelopes = posts.map((post) => envelopeOf(quin, post))
    poison.push(...[envelopes[0], envelopes[77]].filter((envelope) => envelope !== undefined))
    const trace = newGuid()
    await pack(pod, envelopes, { trace })
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual(guidsOf(posts.filter((_, index) => index !== 0 && index !== 77)))
    const failed = await pod.jobs.failed('inbound', 0, 10)
    expect(failed.map(({ failedReason, attemptsMade }) => ({ failedReason, attemptsMade }))).toEqual([
      { failedReason: 'internal', attemptsMade: 11 },
      { failedReason: 'internal', attemptsMade: 11 },
    ])
    expect(
      failed.map(({ data }) => data.messages.map(({ envelope }: { envelope: string }) => envelope)).sort(),
    ).toEqual(poison.map((envelope) => [envelope]).sort())
    // Two paths through seven halvings; then each message runs alone, eleven times, and nothing is split any more.
    expect(opened).toBe(27 + 22)
    expect(failed.map(({ data }) => data.alone)).toEqual([true, true])
    const host = hostOf(quin)
    const dead = { pod: host, trace, attempts: 11 }
    expect(await listDeadLetters(pod, { pod: host })).toMatchObject([dead, dead])
    expect(await listDeadLetters(pod, { pod: 'other.example' })).toEqual([])
    const byPod = (filter: DeadLetterFilter) => countDeadLetters(pod, filter, 'pod', { groups: 10 })
    const counts = [{ value: host, count: 2 }]
    expect([await byPod({}), await byPod({ pod: host }), await byPod({ pod: 'other.example' })]).toEqual([
      counts,
      counts,
      [],
    ])

    isBroken = false
    expect(await replayDeadLetters(pod)).toBe(2)
    await pod.waitUntilIdle()
    expect(await postGuids(pod)).toEqual(guidsOf(posts))
    expect(await listDeadLetters(pod)).toEqual([])
  })

  it('are retried as one batch when none of them is the cause', async () => {
    const sizes: number[] = []
    const pod = await start({
      timing: { timeoutMs: 1_000 },
      crypto: cryptoWith(async (envelopes) => {
        sizes.push(envelopes.length)
        if (sizes.length === 1) await new Promise(() => {})
      }),
    })
    const quin = await addKnownPerson(pod)
    const posts = Array.from({ length: 20 }, () => postBy(quin))
    await pack(
      pod,
      posts.map((post) => envelopeOf(quin, post)),
    )
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual(guidsOf(posts))
    expect(sizes).toEqual([20, 20])
  })

  it.each(['57014', '53200'])(
    'are stored without the one that exceeds the limits of a transaction (%s)',
    async (code) => {
      const others = Array.from({ length: 7 }, () => 'ordinary')
      const pod = await start({
        crypto: cryptoWith(async (envelopes) => {
          if (envelopes.includes(heavy)) throw Object.assign(new Error('canceling statement'), { code })
        }),
      })
      const quin = await addKnownPerson(pod)
      const heavy = envelopeOf(quin, postBy(quin))
      const posts = others.map((text) => postBy(quin, { text }))
      await pack(pod, [heavy, ...posts.map((post) => envelopeOf(quin, post))])
      await vi.waitFor(async () => expect(await listDeadLetters(pod)).toHaveLength(1), { timeout: 60_000 })
      await pod.waitUntilIdle()

      expect(await postGuids(pod)).toEqual(guidsOf(posts))
    },
  )

  it('never become dead letters as a batch, for any number of failures of their job', async () => {
    const pod = await start({
      crypto: cryptoWith(async (envelopes) => {
        if (envelopes.length > 1) throw new OutOfTime('timeout', 'A batch never ends in time.')
      }),
    })
    const quin = await addKnownPerson(pod)
    const posts = Array.from({ length: 3 }, () => postBy(quin))
    await pack(
      pod,
      posts.map((post) => envelopeOf(quin, post)),
    )
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual(guidsOf(posts))
    expect(await listDeadLetters(pod)).toEqual([])
  })

  it('of a newer version are put back, and stored by a worker of that version', async () => {
    const pod = await start({ queues: ['inbound'] })
    const quin = await addKnownPerson(pod)
    const [posted, resumed] = [postBy(quin), postBy(quin)]
    const acceptedAt = new Date().toISOString()
    const newerJob = { ...receivePublicJob, version: 2 }
    await pod.jobs.add(newerJob, { acceptedAt, messages: [envelopeOf(quin, posted)] })
    await pod.db('outbox').insert({
      queue: 'inbound',
      name: receivePublicJob.name,
      data: { recipientGuid: null, times: 0, last: false, jobVersion: 2 },
      payload: envelopeOf(quin, resumed),
      acceptedAt,
    })
    await sweepAllNow(pod.db)
    await sweep(pod)
    await vi.waitFor(async () => {
      const delayed = await pod.jobs.list('inbound', 'delayed', 0, 10)
      const jobs = await Promise.all(delayed.map(({ id }) => pod.jobs.find('inbound', id)))
      expect(jobs).toMatchObject([{ data: { timesPutBack: expect.any(Number) } }, { attemptsMade: 0 }])
    }, 10_000)
    expect(await postGuids(pod)).toEqual([])

    await pod.workers.close()
    const newer = { ...pod, jobs: { ...pod.jobs, versionOf: () => 2 } }
    open.push(startTestWorkers(newer, { queues: ['inbound'], handlers: {} }))
    await pod.waitUntilIdle()
    expect(await postGuids(pod)).toEqual(guidsOf([posted, resumed]))
  })

  it('that kill the worker end as dead letters, and their neighbours are stored', async () => {
    const poison: string[] = []
    let deaths = 0
    let die = () => {}
    const pod = await start({
      queues: ['fetch'],
      crypto: cryptoWith(async (envelopes) => {
        if (!envelopes.some((envelope) => poison.includes(envelope))) return
        deaths += 1
        die()
        await new Promise(() => {})
      }),
    })
    /** Runs one worker after another: a killed worker leaves its jobs active, and their locks are not renewed. */
    function startMortalWorker(): ObservedWorker {
      const run = createInboundRunner(pod, 'inbound', {
        handlers: {},
        timeoutMs: 60_000,
        abortSignal: new AbortController().signal,
        runSuspect: createSuspectRunner(),
        load: openInboundLoad(),
        putBackDelay: () => 10,
      })
      let isDead = false
      const worker = pod.jobs.serve('inbound', (job) => (isDead ? new Promise(() => {}) : run(job)), {
        concurrency: 32,
        lockMs: 300,
        stalledCheckMs: 150,
        backoff: () => 10,
      })
      die = () => {
        isDead = true
        void worker.close(true).then(() => {
          last = startMortalWorker()
        })
      }
      return worker
    }
    const quin = await addKnownPerson(pod)
    const posts = Array.from({ length: 60 }, () => postBy(quin))
    const envelopes = posts.map((post) => envelopeOf(quin, post))
    poison.push(...envelopes.slice(33, 34))
    let last = startMortalWorker()
    for (let from = 0; from < 60; from += 20) await pack(pod, envelopes.slice(from, from + 20))

    await vi.waitFor(async () => expect(await listDeadLetters(pod)).toMatchObject([{ fault: 'crashed' }]), {
      timeout: 60_000,
      interval: 50,
    })
    await vi.waitFor(async () => expect(await postGuids(pod)).toHaveLength(59), { timeout: 60_000, interval: 50 })
    const [dead] = await pod.jobs.failed('inbound', 0, 10)
    expect(dead?.data.messages).toEqual(poison.map((envelope) => ({ envelope })))
    // In the batch, then in the rest of the batch, then five times alone.
    expect(deaths).toBeLessThanOrEqual(8)
    await last.close()
  }, 40_000)

  it('have one effect when their job runs twice', async () => {
    const pod = await start({ queues: ['inbound', 'fetch', 'fetch-unproven'] })
    await start({ queues: ['inbound'] })
    const quin = await addKnownPerson(pod)
    const post = postBy(quin)
    const comments = Array.from({ length: 20 }, () => commentBy(quin, post.guid))
    const envelopes = [post, ...comments].map((entity) => envelopeOf(quin, entity))

    await Promise.all(Array.from({ length: 6 }, () => pack(pod, envelopes)))
    await pod.waitUntilIdle()

    expect(await pod.rows('posts', 'comments')).toEqual([1, 20])
    expect(await pod.db('posts').select('commentsCount')).toEqual([{ commentsCount: 20 }])
  })

  it('are ignored when their outbox row is deleted', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const [gone, here] = [postBy(quin), postBy(quin)]
    const [{ id }] = await pod
      .db('outbox')
      .insert({ queue: 'inbound', name: 'receive-public', failedAt: new Date() })
      .returning('id')
    const resumed = (outboxId: number) => ({ outboxId, times: 1, last: false })

    await receiveBatch(pod, [
      { envelope: envelopeOf(quin, gone), acceptedAt: new Date(), resumed: resumed(id + 1_000) },
      { envelope: envelopeOf(quin, here), acceptedAt: new Date(), resumed: resumed(id) },
    ])

    expect(await postGuids(pod)).toEqual([here.guid])
    expect(await pod.rows('outbox')).toEqual([0])
  })

  it('cause one fetch of a post for any number of comments on it (300)', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const people = await Promise.all(Array.from({ length: 20 }, (_, index) => addKnownPerson(pod, `p${index}`)))
    const post = postBy(quin)
    fakePods.serve(quin, post)
    const comments = Array.from({ length: 300 }, (_, index) => commentBy(people[index % 20] ?? quin, post.guid))
    const envelopes = comments.map((comment) => envelopeOf(quin, comment))
    for (let from = 0; from < 300; from += 30) await pack(pod, envelopes.slice(from, from + 30))
    await pod.waitUntilIdle(30_000)

    const asked = fakePods.requests.filter((request) => request.includes(`/fetch/post/${post.guid}`))
    expect(asked.filter((request) => request.startsWith(`${hostOf(quin)}/`))).toHaveLength(1)
    expect(asked.length).toBeLessThanOrEqual(2)
    expect(await pod.rows('comments', 'waiting')).toEqual([300, 0])
    expect(await pod.db('posts').select('commentsCount')).toEqual([{ commentsCount: 300 }])
    expect(await listDeadLetters(pod)).toEqual([])
  }, 180_000)

  it('of an unknown signer on a dead pod wait, delay no others, and become dead letters without payload', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const lost = newRemotePerson('lost')
    const webFinger = `${hostOf(lost)}/.well-known/webfinger`
    const held: (() => void)[] = []
    fakePods.script(webFinger, (_request, response) => held.push(() => response.destroy()))
    const [early, late] = [postBy(lost), postBy(quin)]
    await pod.postPublic(early, lost)
    await vi.waitFor(() => expect(held.length).toBeGreaterThan(0))

    await pod.postPublic(late, quin)
    await vi.waitFor(async () => expect(await postGuids(pod)).toEqual([late.guid]))
    expect(await pod.db('waiting').select('waitsFor')).toEqual([{ waitsFor: `person:${lost.address}` }])

    fakePods.script(webFinger, (_request, response) => response.destroy())
    for (const answer of held) answer()
    for (let tries = 1; tries < SIGNER_LIMITS.attemptsAtUnknownHost; tries += 1) {
      await vi.waitFor(async () => expect(await pod.db('signerLookups').pluck('tries')).toEqual([tries]), 60_000)
      await pod.db('signerLookups').update({ nextTryAt: new Date(0) })
      await sweep(pod)
    }
    await vi.waitFor(async () => expect(await pod.rows('waiting', 'signerLookups')).toEqual([0, 0]), 60_000)
    const [dead] = await listDeadLetters(pod)
    expect(dead).toMatchObject({ queue: 'inbound', fault: 'DiscoveryFailed' })
    expect(await showDeadLetter(pod, dead?.id ?? '')).toMatchObject({ payload: null, data: { signer: lost.address } })
    expect(await replayDeadLetters(pod)).toBe(0)
    expect(await dropDeadLetters(pod)).toBe(1)

    fakePods.script(webFinger, (_request, response) => response.end(JSON.stringify(fakePods.webFinger(lost))))
    await pod.postPublic(early, lost)
    await pod.waitUntilIdle()
    expect(await postGuids(pod)).toEqual(guidsOf([early, late]))
    expect(await listDeadLetters(pod)).toEqual([])
  })

  it('on an entity that no pod has, or whose fetch returns another entity, become dead letters', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const [nothing, wrong] = [postBy(quin), postBy(quin)]
    fakePods.serve(quin, { ...postBy(quin), guid: wrong.guid, author: newRemotePerson('else').address })
    await pod.postPublic(commentBy(quin, nothing.guid), quin)
    await pod.postPublic(commentBy(quin, wrong.guid), quin)
    await pod.waitUntilIdle()

    const letters = (await listDeadLetters(pod)).map(({ queue, fault, attempts }) => ({ queue, fault, attempts }))
    expect(letters.filter(({ queue }) => queue === 'fetch')).toEqual([
      { queue: 'fetch', fault: 'NotFetchable', attempts: 11 },
      { queue: 'fetch', fault: 'NotFetchable', attempts: 11 },
    ])
    expect(letters.filter(({ queue }) => queue === 'inbound')).toEqual([
      { queue: 'inbound', fault: 'NotFetchable', attempts: 1 },
      { queue: 'inbound', fault: 'NotFetchable', attempts: 1 },
    ])
    expect(await pod.rows('posts', 'comments', 'waiting')).toEqual([0, 0, 0])
  })

  it('with an endless chain of parents are given up after a few fetches, and delay no others', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const prefix = newGuid().slice(0, 20)
    const guid = (index: number) => `${prefix}${String(index).padStart(12, '0')}`
    const reshare = (index: number) => ({
      type: 'reshare' as const,
      author: quin.address,
      guid: guid(index),
      created_at: new Date('2024-05-06T07:08:09Z'),
      root_author: quin.address,
      root_guid: guid(index + 1),
    })
    for (let index = 1; index < 40; index += 1) fakePods.serve(quin, reshare(index))
    const post = postBy(quin)
    await pod.postPublic(reshare(0), quin)
    await pod.postPublic(post, quin)
    await pod.waitUntilIdle()

    expect(await postGuids(pod)).toEqual([post.guid])
    expect(new Set(fetches(quin)).size).toBeLessThanOrEqual(6)
    expect(await listDeadLetters(pod)).toMatchObject([
      { queue: 'inbound', fault: 'NotFetchable' },
      { queue: 'fetch', fault: 'NotFetchable' },
    ])
    expect(await pod.rows('waiting')).toEqual([0])
  })

  it('are resumed in order of their references: the author, the post, the comment, the like', async () => {
    const pod = await start()
    const quin = newRemotePerson()
    const remy = await addKnownPerson(pod, 'remy')
    const post = postBy(quin)
    const comment = commentBy(remy, post.guid)
    const like = signedBy(remy, {
      type: 'like',
      author: remy.address,
      guid: newGuid(),
      parent_guid: comment.guid,
      parent_type: 'Comment',
      positive: true,
    })
    fakePods.script(`${hostOf(quin)}/fetch/comment/${comment.guid}`, (_request, response) => {
      response.end(envelopeOf(quin, comment))
    })
    fakePods.serve(quin, post)
    await pod.postPublic(like, quin)
    await pod.waitUntilIdle()

    expect(await pod.rows('posts', 'comments', 'likes', 'waiting')).toEqual([1, 1, 1, 0])
    expect(await listDeadLetters(pod)).toEqual([])
  })

  it('of an offline pod mark that pod for a check', async () => {
    const pod = await start()
    const quin = await addKnownPerson(pod)
    const remy = await addKnownPerson(pod, 'remy')
    const far = new Date(Date.now() + 86_400_000)
    await pod.db('pods').update({ offlineSince: new Date(0), nextTryAt: far })

    await pod.postPublic(postBy(quin), quin)
    await pod.postPublic(postBy(quin, { public: false }), remy) // rejected: this sender may not send it
    await pod.waitUntilIdle()

    const rows = await pod.db('pods').orderBy('host').select('host', 'checkWanted', 'nextTryAt')
    const [first, second] = rows.sort(
      (one, other) => one.host.length - other.host.length || (one.host < other.host ? -1 : 1),
    )
    expect(first).toMatchObject({ host: hostOf(quin), checkWanted: true })
    expect(first?.nextTryAt.getTime()).toBeLessThanOrEqual(Date.now())
    expect(second).toEqual({ host: hostOf(remy), checkWanted: false, nextTryAt: far })
  })
})
