import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { FastifyInstance } from 'fastify'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { openMetrics } from '../../../src/operations/metrics.js'
import { Person } from '../../../src/persistence/models/person.js'
import type { Services } from '../../../src/services/services.js'
import { buildApp } from '../../../src/web/server/app.js'
import { openTcpProxy, type TcpProxy } from '../../support/http/tcp-proxy.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { NO_EVENT_LOOP_LIMIT } from '../../support/pods/build-pod.js'
import { readKey } from '../../support/pods/fixed-key-crypto.js'
import { recordInboundQueue } from '../../support/queues/inbound-queue-recorder.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

const encryptedEnvelope = JSON.stringify({ aes_key: 'k'.repeat(684), encrypted_magic_envelope: 'ZW52ZWxvcGU=' })

describe.each(queueBackends)('the inbound endpoint, with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: Services
  let app: FastifyInstance
  let port: number
  let ann: string
  const lines: string[] = []

  beforeAll(async () => {
    stores = await openTestStores(backend)
    const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
    pod = { ...(await stores.openPod()), log }
    app = await buildApp(pod, { limits: NO_EVENT_LOOP_LIMIT })
    await app.listen({ host: '127.0.0.1', port: 0 })
    port = (app.server.address() as AddressInfo).port // it listens on a port
    ann = await addLocal('ann')
  })
  afterAll(async () => {
    await app.close()
    await stores.close()
  })

  async function addLocal(name: string, closedAt?: Date): Promise<string> {
    const guid = newGuid()
    const fields = { guid, address: `${name}@pod.example`, publicKey: readKey('1.public.pem') }
    const person = await pod.db.transaction((transaction) => Person.insertWithProfile(transaction, fields))
    if (closedAt) await person.$query(pod.db).patch({ closedAt })
    return guid
  }

  function post(path: string, payload: string | Buffer, headers: Record<string, string> = {}) {
    return app.inject({ method: 'POST', url: path, payload, headers })
  }

  function outcomes(): Record<string, number> {
    return Object.fromEntries(
      [...app.inboundEndpoint.counts()].map(({ channel, outcome, messages }) => [`${channel} ${outcome}`, messages]),
    )
  }

  /** Counts the outcomes since `before`. */
  function countingFrom(before = outcomes()): () => Record<string, number> {
    return () => {
      const changed = Object.entries(outcomes()).filter(([name, count]) => count !== (before[name] ?? 0))
      return Object.fromEntries(changed.map(([name, count]) => [name, count - (before[name] ?? 0)]))
    }
  }

  /** A client that controls the framing of the body. */
  async function send(
    headers: Record<string, string>,
    write: (client: ClientRequest) => void,
  ): Promise<{ status: number | undefined; body: string }> {
    const client = request({ port, method: 'POST', path: '/receive/public', headers })
    const answered = once(client, 'response') as Promise<[IncomingMessage]> // what this event carries
    write(client)
    const [response] = await answered
    return { status: response.statusCode, body: await text(response) }
  }

  it('answers 202 without a body once a public message is in the queue', async () => {
    const envelope = `<env>${newGuid()}</env>`

    const response = await post('/receive/public', envelope)

    expect([response.statusCode, response.body]).toEqual([202, ''])
    await using taken = recordInboundQueue(pod)
    expect(await taken.until(1)).toEqual([{ envelope, trace: expect.any(String) }])
  })

  it('accepts malformed messages like others, and drops empty ones', async () => {
    await using taken = recordInboundQueue(pod)
    const counted = countingFrom()

    for (const garbage of ['garbage', '<env/>', '{}', '']) {
      expect((await post('/receive/public', garbage)).statusCode).toBe(202)
    }

    expect(await taken.until(3)).toHaveLength(3)
    expect(counted()).toEqual({ 'public accepted': 3, 'public malformed': 1 })
  })

  it.each([
    undefined,
    'application/magic-envelope+xml',
    'text/xml',
    'application/x-www-form-urlencoded',
    'application/json; charset=utf-8',
    'application/octet-stream',
    'multipart/form-data',
    'nonsense',
    ';;;',
    '',
  ])('takes the body as it is when its type is said to be %s', async (type) => {
    await using taken = recordInboundQueue(pod)
    const envelope = '{"a": 1}\r\n<b>=%20&c</b>\ufeff'

    const { status } = await send(type === undefined ? {} : { 'content-type': type }, (client) => client.end(envelope))
    const privately = await post(`/receive/users/${ann}`, encryptedEnvelope, type ? { 'content-type': type } : {})

    expect([status, privately.statusCode]).toEqual([202, 202])
    const messages = await taken.until(2)
    expect(messages).toContainEqual({ envelope, trace: expect.any(String) })
    const trace = privately.headers['x-request-id']
    expect(messages).toContainEqual({ envelope: encryptedEnvelope, recipientGuid: ann, trace })
  })

  it('replaces every byte that a text cannot hold', async () => {
    await using taken = recordInboundQueue(pod)

    await post('/receive/public', Buffer.from([0x61, 0xff, 0x00, 0xc3, 0x28, 0xed, 0xa0, 0x80, 0x62]))

    const [message] = await taken.until(1)
    expect(message?.envelope).toBe('a\ufffd\ufffd\ufffd(\ufffd\ufffd\ufffdb')
  })

  it('accepts private messages for local persons only', async () => {
    await using taken = recordInboundQueue(pod)
    const counted = countingFrom()
    const ben = await addLocal('ben', new Date())
    const remy = await addRemotePerson(pod, 'remy@r.example')

    const statuses = []
    for (const guid of [ann, ann, ben, newGuid(), remy.guid, 'short', "' or 1=1"]) {
      statuses.push((await post(`/receive/users/${encodeURIComponent(guid)}`, encryptedEnvelope)).statusCode)
    }

    expect(statuses).toEqual([202, 202, 202, 404, 404, 404, 404])
    const recipients = (await taken.until(3)).map(({ recipientGuid }) => recipientGuid)
    expect(recipients).toEqual([ann, ann, ben])
    expect(counted()).toEqual({ 'private accepted': 3, 'private unknown_recipient': 4 })
  })

  it('accepts messages for a new account, also after a message came before it existed', async () => {
    const guid = newGuid()
    expect((await post(`/receive/users/${guid}`, encryptedEnvelope)).statusCode).toBe(404)
    await pod.db.transaction((transaction) =>
      Person.insertWithProfile(transaction, { guid, address: 'new@pod.example', publicKey: readKey('1.public.pem') }),
    )

    await using taken = recordInboundQueue(pod)
    expect((await post(`/receive/users/${guid}`, encryptedEnvelope)).statusCode).toBe(202)
    await taken.until(1)
  })

  it.each([
    '',
    'garbage',
    '[]',
    'null',
    '"text"',
    '{}',
    '{"aes_key":"k"}',
    encryptedEnvelope.replace('"ZW52ZWxvcGU="', '3'),
    encryptedEnvelope.replace('ZW52ZWxvcGU=', ''),
    JSON.stringify({ aes_key: 'k'.repeat(40), encrypted_magic_envelope: 'ZW52ZWxvcGU=' }),
    JSON.stringify({ aes_key: 'k'.repeat(4_000), encrypted_magic_envelope: 'ZW52ZWxvcGU=' }),
  ])('answers 202 for the private message %j, which cannot be one, and forgets it', async (body) => {
    const counted = countingFrom()

    expect((await post(`/receive/users/${ann}`, body)).statusCode).toBe(202)

    expect(counted()).toEqual({ 'private malformed': 1 })
    expect(await pod.jobs.counts('inbound-private')).toMatchObject({ waiting: 0, active: 0, delayed: 0 })
  })

  it('stores 1.5 MB unchanged, and answers 413 above 8 MiB', async () => {
    await using taken = recordInboundQueue(pod)
    const counted = countingFrom()
    const large = 'ä'.repeat(750_000)
    const tooLarge = Buffer.alloc(9 * 2 ** 20, 'a')

    const fits = await send({}, (client) => client.end(large))
    const declared = await send({ 'content-length': `${tooLarge.length}` }, (client) => client.end(tooLarge))
    const chunked = await send({ 'transfer-encoding': 'chunked' }, (client) => client.end(tooLarge))

    expect([fits.status, declared.status, chunked.status]).toEqual([202, 413, 413])
    const [message] = await taken.until(1)
    expect(message?.envelope === large).toBe(true)
    expect(counted()).toEqual({ 'public accepted': 1, 'public too_large': 2 })
    expect(app.inboundEndpoint.packing.size().heldBytes).toBe(0)
  })

  it('reads a chunked body, and one with `Expect: 100-continue`', async () => {
    await using taken = recordInboundQueue(pod)

    const chunked = await send({ 'transfer-encoding': 'chunked' }, (client) => {
      client.write('<chu')
      client.end('nked/>')
    })
    const continued = await send({ expect: '100-continue' }, (client) => {
      client.flushHeaders()
      client.once('continue', () => client.end('<continued/>'))
    })

    expect([chunked.status, continued.status]).toEqual([202, 202])
    expect(await taken.until(2)).toEqual([
      { envelope: '<chunked/>', trace: expect.any(String) },
      { envelope: '<continued/>', trace: expect.any(String) },
    ])
  })

  it('answers 415 for a compressed message and does not decompress it', async () => {
    expect((await post('/receive/public', 'gzipped', { 'content-encoding': 'gzip' })).statusCode).toBe(415)

    await using taken = recordInboundQueue(pod)
    expect((await post('/receive/public', 'plain', { 'content-encoding': 'Identity' })).statusCode).toBe(202)
    expect(await taken.until(1)).toEqual([{ envelope: 'plain', trace: expect.any(String) }])
  })

  it('frees the bytes of a message whose sender disconnects', async () => {
    const counted = countingFrom()
    const client = request({ port, method: 'POST', path: '/receive/public', headers: { 'content-length': '1000' } })
    client.on('error', () => undefined)
    client.write('<half')
    await vi.waitFor(() => expect(app.inboundEndpoint.packing.size().heldBytes).toBe(5), {
      interval: 10,
    })

    client.destroy()

    await vi.waitFor(() => expect(counted()).toEqual({ 'public broken_off': 1 }), { interval: 10 })
    expect(app.inboundEndpoint.packing.size().heldBytes).toBe(0)
  })

  it.each(['GET', 'PUT', 'DELETE'] as const)('answers 404 for %s', async (method) => {
    for (const url of ['/receive/public', `/receive/users/${ann}`]) {
      expect((await app.inject({ method, url })).statusCode).toBe(404)
    }
  })

  it('packs messages that arrive together into few jobs, and loses none', async () => {
    const envelopes = Array.from({ length: 500 }, (_, number) => `<env>${number}</env>`)

    const answers = await Promise.all(envelopes.map((envelope) => post('/receive/public', envelope)))

    expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([202]))
    await using taken = recordInboundQueue(pod)
    const came = (await taken.until(500)).map(({ envelope }) => envelope)
    expect(came.toSorted()).toEqual(envelopes.toSorted())
    expect(taken.jobs.length).toBeLessThan(50)
    expect(Math.max(...taken.jobs)).toBeLessThanOrEqual(128)
  })

  const DEBUG = pino.levels.values['debug'] ?? 0

  it('writes nothing to the log, unless it is verbose', async () => {
    await using taken = recordInboundQueue(pod)
    lines.length = 0

    await post('/receive/public', 'a message')
    await post(`/receive/users/${newGuid()}`, encryptedEnvelope)

    await taken.until(1)
    expect(lines.filter((line) => JSON.parse(line).level > DEBUG)).toEqual([])
  })

  it('counts received messages by outcome for the operator', async () => {
    const metrics = openMetrics(pod)
    const watched = await buildApp(pod, { metrics, limits: NO_EVENT_LOOP_LIMIT })
    await using taken = recordInboundQueue(pod)
    await watched.inject({ method: 'POST', url: '/receive/public', payload: 'a message' })
    await watched.inject({ method: 'POST', url: `/receive/users/${ann}`, payload: 'garbage' })

    const figures = await metrics.text()

    await taken.until(1)
    await watched.close()
    expect(figures).toContain('pod_received_messages_total{channel="public",outcome="accepted"} 1')
    expect(figures).toContain('pod_received_messages_total{channel="private",outcome="malformed"} 1')
    expect(figures).toMatch(/^pod_inbound_bytes\{state="queued"\} [1-9]/m)
    expect(figures).toContain('pod_inbound_bytes{state="gathered"} 0')
    expect(figures).toMatch(/^pod_inbound_messages [1-9]/m)
  })

  describe('with a full backlog', () => {
    it('refuses messages before it reads them, and accepts them again when the backlog has shrunk (P10)', async () => {
      const small = await buildApp(
        { ...pod, config: { ...pod.config, inboundBytes: 1_000 } },
        { limits: NO_EVENT_LOOP_LIMIT },
      )
      const send = (payload: string) => small.inject({ method: 'POST', url: '/receive/public', payload })
      expect((await send('a'.repeat(600))).statusCode).toBe(202)
      expect((await send('b'.repeat(600))).statusCode).toBe(503)
      expect((await send('c'.repeat(300))).statusCode).toBe(202)
      expect((await send('d'.repeat(300))).statusCode).toBe(503)

      const refused = await send('e'.repeat(200))
      expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '120'])
      expect((await small.inject('/api/v1/user')).statusCode).toBe(401)

      await using taken = recordInboundQueue(pod)
      await taken.until(2)
      await vi.waitFor(async () => expect((await send('again')).statusCode).toBe(202), {
        interval: 50,
      })
      await taken.until(3)
      await small.close()
    })
  })

  describe('while the queue is unavailable', () => {
    let proxy: TcpProxy
    let behind: FastifyInstance
    beforeAll(async () => {
      proxy = await openTcpProxy(Number(new URL(stores.redisUrl ?? stores.databaseUrl).port))
      const { jobs } = await stores.openPod(stores.queueThrough(proxy))
      behind = await buildApp({ ...pod, jobs }, { limits: NO_EVENT_LOOP_LIMIT })
    })
    afterAll(async () => {
      await behind.close()
      await proxy.close()
    })

    const send = (payload: string) => behind.inject({ method: 'POST', url: '/receive/public', payload })

    async function untilAccepted(payload: string): Promise<void> {
      await vi.waitFor(async () => expect((await send(payload)).statusCode).toBe(202), {
        interval: 100,
      })
    }

    it.each(['refuse', 'freeze'] as const)(
      'answers 503 at once, and loses nothing that is sent again (%s)',
      async (fault) => {
        await using taken = recordInboundQueue(pod)
        await untilAccepted('before')
        lines.length = 0
        await proxy[fault]()

        const refused = await Promise.all(Array.from({ length: 300 }, (_, number) => send(`message ${number}`)))

        expect(new Set(refused.map(({ statusCode }) => statusCode))).toEqual(new Set([503]))
        expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0)
        expect(behind.inboundEndpoint.packing.size().heldBytes).toBe(0)
        expect(lines.filter((line) => line.includes('/receive'))).toEqual([])

        await proxy.recover()
        for (let number = 0; number < 300; number += 1) await untilAccepted(`message ${number}`)
        const sent = ['before', ...Array.from({ length: 300 }, (_, number) => `message ${number}`)]
        await vi.waitFor(() => expect(new Set(taken.messages.map(({ envelope }) => envelope))).toEqual(new Set(sent)), {
          interval: 50,
        })
      },
    )

    it('still serves clients', async () => {
      proxy.freeze()
      const waiting = Promise.all(Array.from({ length: 200 }, (_, number) => send(`another ${number}`)))

      expect((await behind.inject('/api/v1/user')).statusCode).toBe(401)
      expect((await behind.inject('/health/live')).statusCode).toBe(200)

      await waiting
      await proxy.recover()
      await using taken = recordInboundQueue(pod)
      await untilAccepted('after')
      await taken.until(1)
    })
  })
})

it('a private message is answered with 503 while the database is unavailable', async () => {
  const [backend] = queueBackends
  if (backend === undefined) throw new Error('there is a back end')
  const stores = await openTestStores(backend)
  const proxy = await openTcpProxy(Number(new URL(stores.databaseUrl).port))
  const pod = await stores.openPod()
  const { db } = await stores.openPod({
    databaseUrl: Object.assign(new URL(stores.databaseUrl), { port: `${proxy.port}` }).href,
  })
  const app = await buildApp({ ...pod, db }, { limits: NO_EVENT_LOOP_LIMIT })
  await proxy.refuse()

  const response = await app.inject({ method: 'POST', url: `/receive/users/${newGuid()}`, payload: encryptedEnvelope })

  expect([response.statusCode, Number(response.headers['retry-after'])]).toEqual([503, 10])
  await app.close()
  await stores.close()
  await proxy.close()
})
