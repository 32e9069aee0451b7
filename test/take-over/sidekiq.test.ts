import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Redis } from 'ioredis'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { deliver } from '../../src/federation/outbound/deliver.js'
import { openUnlimitedSession } from '../../src/persistence/database/database.js'
import type { MessageEntity } from '../../src/protocol/entities/conversations.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { carryJobs } from '../../src/take-over/sidekiq/carry-jobs.js'
import { findSidekiqJobs, requireIdleSidekiq } from '../../src/take-over/sidekiq/require-idle-sidekiq.js'
import { copyOldPod, examineOldPod, switchOver } from '../../src/take-over/take-over.js'
import { outboundHandlers } from '../../workers/handlers/outbound.js'
import { photoHandlers } from '../../workers/handlers/photos.js'
import { encryptEnvelopeFor } from '../support/federation/envelopes.js'
import { startFakePods } from '../support/federation/fake-pods.js'
import { startInboundPod } from '../support/pods/inbound-pod.js'
import { redisProgram, startTestRedis, type TestRedis } from '../support/queues/redis-server.js'
import { createOldPod, guidOf, OLD_HOST, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

describe.runIf(redisProgram() !== undefined)('the jobs of the old pod', () => {
  let server: TestRedis
  let redis: Redis
  let ids = 0

  beforeAll(async () => {
    server = await startTestRedis()
    redis = new Redis(server.url)
  })
  beforeEach(() => server.empty())
  afterAll(async () => {
    redis?.disconnect()
    await server?.stop()
  })

  function job(name: string, args: readonly unknown[] = [], more: Record<string, unknown> = {}): string {
    ids += 1
    return JSON.stringify({
      class: `Workers::${name}`,
      args,
      jid: `jid${ids}`,
      created_at: 1_600_000_000 + ids,
      ...more,
    })
  }

  it('are counted by class, and hold up the switch if only the old pod can do them', async () => {
    expect(await requireIdleSidekiq(server.url, { mayLoseJobs: false })).toEqual({ processes: 0, waiting: {}, dead: 0 })
    await redis.rpush('queue:urgent', job('ReceiveLocal', ['private words']), job('Mail::Liked'), 'no job')
    await redis.zadd('schedule', 1, job('SendPublic'))
    await redis.zadd('retry', 1, job('DeferredRetraction'))
    await redis.zadd('dead', 1, job('SendPublic'))
    const waiting = { ReceiveLocal: 1, 'Mail::Liked': 1, SendPublic: 1, DeferredRetraction: 1, unreadable: 1 }
    expect(await findSidekiqJobs(server.url)).toEqual({ processes: 0, waiting, dead: 1 })
    const refused = requireIdleSidekiq(server.url, { mayLoseJobs: false })
    await expect(refused).rejects.toThrow('effect would be lost (1 ReceiveLocal, 1 DeferredRetraction)')
    expect((await requireIdleSidekiq(server.url, { mayLoseJobs: true })).waiting).toEqual(waiting)
    await redis.sadd('processes', 'host:1:a')
    await redis.hset('host:1:a', 'beat', String(Date.now() / 1_000))
    await expect(requireIdleSidekiq(server.url, { mayLoseJobs: true })).rejects.toThrow('A process of Sidekiq runs')
  })

  it('must not be in the Redis of the new pod', async () => {
    const { port } = new URL(server.url)
    const taken = await openTestTarget('postgres://nobody@127.0.0.1/nowhere', `https://${OLD_HOST}`)
    const config = { ...taken.target.config, redisUrl: `redis://127.0.0.1:${port}/0` }
    const options = { ...taken.options, sidekiq: `redis://:password@localhost:${port}` }
    try {
      for (const step of [examineOldPod, copyOldPod])
        await expect(step({ ...taken.target, config }, options)).rejects.toThrow('--sidekiq is the Redis of this pod')
    } finally {
      await taken.close()
    }
  })

  describe('at the switch', () => {
    let old: OldPod
    let taken: TestTarget

    beforeAll(async () => {
      old = await createOldPod()
      taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
    }, 180_000)
    afterAll(async () => {
      await taken?.close()
      await old?.close()
    })

    const alice = `alice@${OLD_HOST}`
    const rita = 'rita@one.example'

    function envelopeBy(address: string, entity: Entity): string {
      const key = old.privateKeys.get(address.split('@')[0] ?? '')
      if (key === undefined) throw new Error(`${address} has no key.`)
      return signMagicEnvelope(writeEntity(entity), address, key)
    }

    const postOf = (author: string, guid: string, words: string): Entity => ({
      type: 'status_message',
      author,
      guid,
      created_at: new Date('2020-01-02T03:04:05Z'),
      public: true,
      text: words,
      photos: [],
    })

    it('are continued once each, with the same bytes', async () => {
      await using fakePods = await startFakePods()
      const images = join(taken.folder, 'old', 'images')
      await mkdir(images, { recursive: true })
      const picture = await sharp({ create: { width: 800, height: 4, channels: 3, background: 'red' } })
        .png()
        .toBuffer()
      await writeFile(join(images, 'x.JPG'), picture)

      const entity = `StatusMessage:${guidOf('post-101')}`
      const older = envelopeBy(alice, postOf(alice, guidOf('post-101'), 'older bytes'))
      const newer = envelopeBy(alice, postOf(alice, guidOf('post-101'), 'newer bytes'))
      const inbox = (host: string) => `https://${host}/receive/public`
      const sent = job('SendPublic', [
        1,
        entity,
        [inbox('one.example'), inbox('two.example'), inbox('no.example')],
        older,
        3,
      ])
      await redis.zadd('schedule', 1_600_000_500, sent)
      await redis.zadd('retry', 1_600_000_600, sent)
      await redis.zadd(
        'schedule',
        4_000_000_000,
        job('SendPublic', [1, entity, ['http://three.example:3000/receive/public'], newer]),
      )
      const sealed = encryptEnvelopeFor(old.publicKeys['tina'] ?? '', older)
      const toTina = `http://three.example:3000/receive/users/${guidOf('tina@three.example:3000')}`
      await redis.zadd(
        'schedule',
        1,
        job('SendPrivate', [1, `Message:${guidOf('message-1')}`, { [toTina]: sealed }, 2]),
      )
      await redis.zadd('schedule', 1, job('SendPublic', [99, entity, [inbox('one.example')], older]))
      const message: MessageEntity = {
        type: 'message',
        author: rita,
        guid: guidOf('new-message'),
        text: 'words for Alice',
        created_at: new Date('2020-01-02T03:04:05Z'),
        conversation_guid: guidOf('new-conversation'),
      }
      const conversation: Entity = {
        type: 'conversation',
        author: rita,
        guid: guidOf('new-conversation'),
        subject: 'Soup',
        created_at: message.created_at,
        participants: [rita, alice],
        messages: [message],
      }
      const forAlice = encryptEnvelopeFor(old.publicKeys['alice'] ?? '', envelopeBy(rita, conversation))
      const carol = `carol@${OLD_HOST}`
      const toCarol = { ...message, guid: guidOf('late-message'), conversation_guid: guidOf('late-conversation') }
      const forCarol = encryptEnvelopeFor(
        old.publicKeys['carol'] ?? '',
        envelopeBy(rita, {
          type: 'conversation',
          author: rita,
          guid: guidOf('late-conversation'),
          subject: 'Soup',
          created_at: message.created_at,
          participants: [rita, carol],
          messages: [toCarol],
        }),
      )
      const fromRita = envelopeBy(rita, postOf(rita, guidOf('new-post'), 'a new post'))
      await redis.lpush(
        'queue:high',
        job('ReceivePrivate', [1, forAlice, false]),
        job('ReceivePrivate', [3, forCarol, false]),
        job('ReceivePublic', [fromRita, false]),
      )
      await redis.lpush('queue:urgent', job('ReceivePrivate', [99, forAlice]), job('ReceiveLocal', ['Post', 1, [1]]))
      await redis.lpush(
        'queue:high',
        job('DeferredDispatch', [2, 'Comment', 1, {}]),
        job('DeferredDispatch', [2, 'Comment', 990, {}]),
      )
      await redis.lpush(
        'queue:high',
        job('DeferredDispatch', [1, 'Profile', 1, { subscriber_ids: [23] }]),
        job('ProcessPhoto', [1]),
      )
      await redis.lpush('queue:low', job('Mail::Liked', ['private words']))
      await redis.zadd('dead', 1, job('SendPublic'))

      const options = {
        ...taken.options,
        uploads: join(taken.folder, 'old'),
        sidekiq: server.url,
        mayLoseJobs: false,
      }
      await copyOldPod(taken.target, options)
      await expect(switchOver(taken.target, options, async () => ({}))).rejects.toThrow('1 ReceiveLocal')
      const { jobs } = await switchOver(taken.target, { ...options, mayLoseJobs: true }, async () => ({}))
      expect(jobs?.carried).toEqual({
        DeferredDispatch: 2,
        ProcessPhoto: 1,
        ReceivePrivate: 2,
        ReceivePublic: 1,
        SendPrivate: 1,
        SendPublic: 2,
      })
      expect(jobs?.dropped.map(({ name, fault, count }) => [name, fault, count])).toEqual([
        ['DeferredDispatch', 'the record is gone', 1],
        ['Mail::Liked', 'not carried over', 1],
        ['ReceiveLocal', 'not carried over', 1],
        ['ReceivePrivate', 'unknown account', 1],
        ['SendPublic', 'unknown or blocked recipient', 2],
        ['SendPublic', 'unknown sender', 1],
      ])
      const lost = jobs?.dropped.find(({ fault }) => fault === 'unknown or blocked recipient')
      expect([lost?.examples, jobs?.dead]).toEqual([['no.example', 'two.example'], 1])
      const content = await contentOf()
      expect(content.messages).toEqual([
        ...[{ record: 'post', guid: guidOf('post-101'), sender: 11, public: true, envelope: newer }],
        ...[{ record: 'message', guid: guidOf('message-1'), sender: 11, public: false, envelope: null }],
      ])
      expect(content.deliveries).toEqual([
        { host: 'one.example', person: null, attempts: 3, due: new Date(1_600_000_500_000), body: null },
        { host: 'three.example', person: null, attempts: 0, due: new Date(4_000_000_000_000), body: null },
        { host: 'three.example', person: 23, attempts: 2, due: new Date(1_000), body: sealed },
      ])
      const session = await openUnlimitedSession(taken.target.db, 'take-over')
      await carryJobs(session, server.url, options.signal)
      await session.end()
      expect(await contentOf()).toEqual(content)

      await taken.target.db('deliveries').update({ dueAt: new Date() })
      const received: string[] = []
      for (const path of ['public', `users/${guidOf('tina@three.example:3000')}`]) {
        fakePods.script(`three.example:3000/receive/${path}`, async (request, response) => {
          received.push(await text(request))
          response.writeHead(202).end()
        })
      }
      await using pod = await startInboundPod({
        fakePods,
        environment: taken.environment,
        queues: ['inbound', 'inbound-private', 'photos', 'outbound'],
        handlers: { photos: photoHandlers, outbound: outboundHandlers },
      })
      const picturesOf = async () =>
        (await pod.app.inject('/uploads/images/thumb_small_x.JPG')).headers['cache-control']
      await expect.poll(picturesOf, { timeout: 30_000 }).toContain('immutable')
      await deliver(pod, [3], { queue: 'outbound-slow', signal: options.signal })
      expect(received.toSorted()).toEqual([newer, sealed].toSorted())
      await pod.jobs.addOutboxRows(await pod.db('outbox').select('id', 'queue', 'name'))
      const textOf = (table: string, guid: string) => async () =>
        (await taken.rowsOf(`select text from ${table} where guid = ?`, [guidOf(guid)]))[0]?.['text']
      await expect.poll(textOf('messages', 'new-message'), { timeout: 30_000 }).toBe('words for Alice')
      await expect.poll(textOf('posts', 'new-post'), { timeout: 30_000 }).toBe('a new post')
      // Carol has closed her account at the old pod: her key opens the message, and the sender gets the deletion.
      const answersOfCarol = () =>
        taken.rowsOf(
          `select record, person_id::int as person from outbound_messages
           join deliveries on message_id = outbound_messages.id where sender_id = 13`,
        )
      await expect.poll(answersOfCarol, { timeout: 30_000 }).toEqual([{ record: 'account_deletion', person: null }])
    }, 120_000)

    async function contentOf() {
      return {
        messages: await taken.rowsOf(
          'select record, guid, sender_id::int as sender, public, envelope from outbound_messages order by id',
        ),
        deliveries: await taken.rowsOf(
          `select host, person_id::int as person, attempts, due_at as due, encrypted_envelope as body
           from deliveries join pods on pods.id = pod_id order by deliveries.id`,
        ),
        outbox: await taken.rowsOf(
          'select queue, name, data, payload, sender_id::int as sender from outbox order by id',
        ),
      }
    }
  })
})
