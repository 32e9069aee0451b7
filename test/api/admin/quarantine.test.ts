import { createHash } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { reloadFilters } from '../../../src/domain/moderation/filters/active-filters.js'
import {
  dropQuarantine,
  quarantineTaskHandlers,
  readQuarantinedPayload,
} from '../../../src/domain/operations/quarantine.js'
import type { InboundMessage } from '../../../src/federation/inbound/batch.js'
import { QUARANTINE_LIMITS } from '../../../src/federation/inbound/limits.js'
import { type QuarantineLimits, quarantineRejected } from '../../../src/federation/inbound/quarantine.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import { giveUpOutboxRow, resumeOverdue } from '../../../src/jobs/waiting/resume-messages.js'
import { insertQuarantined } from '../../../src/persistence/inbound/quarantine.js'
import { createMessageReader } from '../../../workers/messages-of-job.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { changeAfterQuery } from '../../support/databases/after-query.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { privateMessage, publicMessage } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { crashInChunk, finishBackgroundTasks, withChunkStep } from '../../support/pods/finish-background-tasks.js'

let api: ApiPod
let adm: StaffClient
let fakePods: FakePods
let quin: FakePerson
/** Each message has a second of its own, so that none exceeds the inserts of a second. */
let clock = 0
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '0' } })
  adm = await makeStaff(api, 'adm', 'admin')
  fakePods = await startFakePods()
  quin = fakePods.person('quin@far.example')
  await addRemotePerson(api.pod, quin.address, { guid: quin.guid, publicKey: quin.publicKey })
})
afterAll(async () => {
  await fakePods.close()
  await api.close()
})
beforeEach(async () => {
  await api.pod.db('quarantine').delete()
})

const reason = 'A test'

async function receive(...messages: readonly InboundMessage[]): Promise<void> {
  clock += 1_000
  const at = clock
  await receiveBatch({ ...api.pod, now: () => new Date(Date.now() + at) }, messages)
}

/** Receives what a replay has put into the outbox, as a worker does it. */
async function receiveReplayed(): Promise<void> {
  const ids = await api.pod
    .db('outbox')
    .whereIn('name', ['receive-public', 'receive-private'])
    .orderBy('id')
    .pluck('id')
  const read = createMessageReader(api.pod)
  for (const outboxId of ids) await receive(...(await read({ data: { outboxId } } as never)))
}

async function listed(query = ''): Promise<readonly Record<string, unknown>[]> {
  return (await adm.get(`/quarantine${query}`)).body
}

/** A message whose signature does not fit. */
function forged(): InboundMessage {
  const message = publicMessage(quin, postBy(quin))
  return { ...message, envelope: message.envelope.replace(/<me:sig([^>]*)>..../, '<me:sig$1>AAAA') }
}

describe('a rejected message', () => {
  it('is listed with its fault and its claims, and counted when it comes again', async () => {
    const message = { ...forged(), source: '203.0.113.7' }
    await receive(message)
    await receive(message)

    const [row, ...more] = await listed('?host=far.example&fault=InvalidSignature')
    expect(more).toEqual([])
    expect(row).toMatchObject({
      ...{ channel: 'public', author: quin.address, host: 'far.example', fault: 'InvalidSignature', times: 2 },
      ...{ source: '203.0.113.7', recipient_guid: null, state: 'held', result: null, replayable: true },
    })
    expect(Object.keys(row ?? {})).not.toContain('payload')
    expect(await listed('?fault=NotPublic')).toEqual([])
    expect((await adm.get(`/quarantine/${row?.['id']}`)).body).toEqual(row)
    expect((await adm.get('/quarantine/0')).body).toMatchObject({ code: 404 })
    expect((await adm.get('/quarantine/999999')).body).toMatchObject({ code: 404, reason: 'quarantined_not_found' })
  })

  it('a private rejected message is stored as the posted ciphertext, without decrypted data', async () => {
    const { alice } = await api.people('alice')
    const recipient: LocalUser = await api.pod.db('people').where({ guid: alice.guid }).first()
    const sealed = privateMessage(quin, recipient, postBy(quin, { public: false }))
    const message = { ...sealed, envelope: sealed.envelope.slice(0, -200) + sealed.envelope.slice(-100) }
    await receive(message)

    const [row] = await listed()
    expect(row).toMatchObject({
      ...{ channel: 'private', recipient_guid: alice.guid, author: null, host: null, entity: null, guid: null },
      ...{ detail: null, bytes: message.envelope.length },
    })
    const payload = await api.app.inject({
      url: `/api/admin/v1/quarantine/${row?.['id']}/payload`,
      headers: { authorization: `Bearer ${adm.token}` },
    })
    expect(payload.headers['content-type']).toBe('application/octet-stream')
    expect(payload.body).toBe(message.envelope)
    expect((await adm.get('/audit?action=quarantine.payload')).body).toMatchObject([
      { actor: { name: 'adm' }, target: { type: 'quarantine', label: String(row?.['id']) } },
    ])
    await readQuarantinedPayload(api.pod, COMMAND_ACTOR, Number(row?.['id']), 'a complaint')
    expect((await adm.get('/audit?action=quarantine.payload&per_page=1')).body).toMatchObject([
      { actor: { name: 'command' }, reason: 'a complaint' },
    ])
  })

  it('is stored once when it is replayed and valid now, and is a repeated one after that', async () => {
    const message = publicMessage(quin, postBy(quin))
    clock += 1_000
    const pod = { ...api.pod, now: () => new Date(Date.now() + clock) }
    await quarantineRejected(pod, [{ inbound: message, fault: 'NotAllowed', reason: 'a rule of yesterday' }])
    const [{ id } = { id: 0 }] = await listed()

    const replay = () => adm.post('/quarantine/replay', { ids: [id], reason })
    expect((await replay()).body).toEqual({ count: 1 })
    expect((await listed())[0]).toMatchObject({ state: 'replaying' })
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ state: 'replayed', result: 'stored', times: 1 })
    await replay()
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'repeated' })

    const bad = forged()
    await receive(bad)
    await adm.post('/quarantine/replay', { fault: 'InvalidSignature', reason })
    await receiveReplayed()
    expect((await listed('?fault=InvalidSignature'))[0]).toMatchObject({ result: 'InvalidSignature', times: 1 })
    expect(await api.pod.db('outbox').where({ name: 'receive-public' })).toEqual([])
  })

  it('by a filter is released without filters, and replayed with them', async () => {
    const filter = { kind: 'word', value: 'casino', action: 'reject', state: 'active', reason }
    expect((await adm.post('/filters', filter)).status).toBe(201)
    await reloadFilters(api.pod)
    await receive(publicMessage(quin, postBy(quin, { text: 'The best casino' })))
    const [row] = await listed()
    expect(row).toMatchObject({ fault: 'Filtered', state: 'held' })

    expect((await adm.post('/quarantine/replay', { ids: [row?.['id']], reason })).body).toEqual({ count: 1 })
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'Filtered' })
    expect((await adm.post('/quarantine/release', { ids: [row?.['id']], reason })).body).toEqual({ count: 1 })
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'stored' })
    await api.pod.db('filters').delete()
    await reloadFilters(api.pod)
  })

  it('is not released for another fault, and neither are the filtered ones instead', async () => {
    await receive(forged())
    clock += 1_000
    const pod = { ...api.pod, now: () => new Date(Date.now() + clock) }
    const inbound = publicMessage(quin, postBy(quin))
    await quarantineRejected(pod, [{ inbound, fault: 'Filtered', reason: 'a filter rejects it' }])

    const released = await adm.post('/quarantine/release', { fault: 'InvalidSignature', reason })
    expect(released.body).toEqual({ count: 0 })
    expect((await listed()).map(({ state }) => state)).toEqual(['held', 'held'])
    expect((await adm.post('/quarantine/release', { fault: 'InvalidSignature' })).body).toMatchObject({ code: 422 })
  })

  it('by a filter is stored when it is replayed after the filter is off, and counts as repeated when it is replayed again', async () => {
    const { filter } = (
      await adm.post('/filters', { kind: 'word', value: 'bingo', action: 'reject', state: 'active', reason })
    ).body
    await reloadFilters(api.pod)
    await receive(publicMessage(quin, postBy(quin, { text: 'The best bingo' })))
    const [row] = await listed()
    const results: unknown[] = [row?.['fault']]
    await adm.call('PATCH', `/filters/${filter.id}`, { state: 'off', reason })
    await reloadFilters(api.pod)

    for (let turn = 0; turn < 2; turn += 1) {
      await adm.post('/quarantine/replay', { ids: [row?.['id']], reason })
      await receiveReplayed()
      results.push((await listed())[0]?.['result'])
    }
    expect(results).toEqual(['Filtered', 'stored', 'repeated'])
    expect(await api.pod.db('posts').where({ text: 'The best bingo' })).toHaveLength(1)
  })

  it('a released message stays released, with its row, while it waits for its parent', async () => {
    await adm.post('/filters', { kind: 'word', value: 'roulette', action: 'reject', state: 'active', reason })
    await reloadFilters(api.pod)
    const parent = postBy(quin)
    const message = publicMessage(quin, commentBy(quin, parent, { text: 'The best roulette' }))
    clock += 1_000
    const pod = { ...api.pod, now: () => new Date(Date.now() + clock) }
    await quarantineRejected(pod, [{ inbound: message, fault: 'Filtered', reason: 'a filter rejects it' }])
    const [row] = await listed()

    await adm.post('/quarantine/release', { ids: [row?.['id']], reason })
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'waiting' })
    await receive(publicMessage(quin, parent))
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'stored' })
    expect(await api.pod.db('comments').pluck('text')).toContain('The best roulette')
    await api.pod.db('filters').delete()
    await reloadFilters(api.pod)
  })

  it('whose waiting time is over has the fault of its dead letter', async () => {
    const message = publicMessage(quin, commentBy(quin, postBy(quin)))
    clock += 1_000
    const pod = { ...api.pod, now: () => new Date(Date.now() + clock) }
    await quarantineRejected(pod, [{ inbound: message, fault: 'NotAllowed', reason: 'a rule of yesterday' }])
    const [row] = await listed()
    await adm.post('/quarantine/replay', { ids: [row?.['id']], reason })
    await receiveReplayed()
    expect((await listed())[0]).toMatchObject({ result: 'waiting' })

    await api.pod.db('waiting').update({ dueAt: new Date(0) })
    await api.pod.db.transaction((transaction) => resumeOverdue(api.pod, transaction, 10))
    const [outboxId] = await api.pod.db('outbox').where({ name: 'receive-public' }).pluck('id')
    await giveUpOutboxRow(api.pod, outboxId, { fault: 'NotFetchable' })
    expect((await listed())[0]).toMatchObject({ state: 'replayed', result: 'NotFetchable' })
    await api.pod.db('outbox').delete()
  })

  it('is deleted after a confirmation of the number; nothing chosen changes nothing', async () => {
    await receive(forged(), forged())

    expect((await adm.post('/quarantine/drop', { reason })).body).toMatchObject({ code: 422, field: 'ids' })
    expect((await adm.post('/quarantine/replay', { reason })).body).toMatchObject({ code: 422, field: 'ids' })
    const choice = { host: 'far.example', reason }
    expect((await adm.post('/quarantine/drop', choice)).body).toMatchObject({
      reason: 'confirmation_needed',
      preview: { messages: 2 },
    })
    expect((await adm.post('/quarantine/drop', { ...choice, confirm: '2' })).body).toEqual({ count: 2 })
    expect(await listed()).toEqual([])
    expect((await adm.get('/audit?action=quarantine.drop')).body).toMatchObject([{ after: { count: 2 } }])
  })

  it('is not deleted without a confirmation if it comes after the count', async () => {
    changeAfterQuery(api.pod, '"quarantine"', () => receive(forged()))
    expect(await dropQuarantine(api.pod, COMMAND_ACTOR, { host: 'far.example', reason })).toEqual({ count: 0 })

    expect(await listed()).toHaveLength(1)
  })
})

describe('the quarantine', () => {
  it('stores ten messages a second in one transaction, and only the beginning of a long one', async () => {
    const many = Array.from({ length: 40 }, () => forged())
    const statements = await statementsDuring(async () => {
      clock += 1_000
      const at = new Date(Date.now() + clock)
      const pod = { ...api.pod, now: () => at }
      for (let turn = 0; turn < 3; turn += 1) {
        await quarantineRejected(
          pod,
          many.map((inbound) => ({ inbound, fault: 'InvalidSignature' as const, reason: 'forged' })),
        )
      }
    })
    expect([statements, await listed()]).toMatchObject([4, { length: QUARANTINE_LIMITS.insertsPerSecond }])

    await api.pod.db('quarantine').delete()
    const long = { ...forged(), envelope: forged().envelope + ' '.repeat(QUARANTINE_LIMITS.payloadBytes) }
    await receive(long)
    const [row] = await listed()
    expect(row).toMatchObject({ replayable: false, bytes: long.envelope.length })
    expect((await adm.post('/quarantine/replay', { ids: [row?.['id']], reason })).body).toEqual({ count: 0 })
  })

  it('is bounded by rows, bytes, fault and claimed host, the oldest first', async () => {
    const limits: QuarantineLimits = { ...QUARANTINE_LIMITS, maxMessages: 6, rowsOfFault: 4, rowsOfHost: 3 }
    const store = async (fault: 'InvalidSignature' | 'NotPublic', host: string, given = limits) => {
      clock += 1_000
      const pod = { ...api.pod, now: () => new Date(Date.now() + clock) }
      const message = { envelope: `<xml>${host} ${clock}</xml>`, acceptedAt: new Date() }
      const signer = { isPodBlocked: false, isPersonBlocked: false }
      const verified = { signer, entity: { type: 'like', author: `ann@${host}`, guid: 'g' } } as never
      await quarantineRejected(pod, [{ inbound: message, message: verified, fault, reason: '' }], given)
    }
    const count = async () => (await listed()).map(({ fault, host }) => `${fault} ${host}`)

    for (let turn = 0; turn < 5; turn += 1) await store('InvalidSignature', 'one.example')
    expect(await count()).toHaveLength(limits.rowsOfHost)
    for (let turn = 0; turn < 3; turn += 1) await store('InvalidSignature', 'two.example')
    expect(await count()).toHaveLength(limits.rowsOfFault)
    for (const host of ['three', 'four', 'five', 'six']) await store('NotPublic', `${host}.example`)
    expect(await count()).toHaveLength(limits.maxMessages)
    await store('NotPublic', 'last.example', { ...limits, maxBytes: 60 })
    expect(await count()).toEqual(['NotPublic last.example', 'NotPublic six.example'])
  })
})

it('equal messages of one batch are one row with their number', async () => {
  const message = forged()
  await receive(message, message, forged())
  await receive(message, message)

  const times = (await listed()).map((row) => row['times'])
  expect(times.toSorted()).toEqual([1, 4])
})

it('a message that another process stores at the same time counts for the bounds', async () => {
  const { db } = api.pod
  const store = (connection: typeof db, payload: string) =>
    insertQuarantined(
      connection,
      [
        {
          ...{
            receivedAt: new Date(),
            recipientGuid: null,
            source: null,
            author: 'ann@one.example',
            host: 'one.example',
          },
          ...{
            entity: null,
            guid: null,
            fault: 'NotPublic',
            detail: null,
            payload,
            bytes: payload.length,
            trace: null,
          },
          ...{ isWhole: true, digest: createHash('sha256').update(payload).digest('hex') },
        },
      ],
      { ...QUARANTINE_LIMITS, rowsOfHost: 1 },
    )
  let other: Promise<void> | undefined
  await db.transaction(async (transaction) => {
    await store(transaction, 'first')
    other = store(db, 'second')
    // Without a lock the second would end first, and both rows would stay.
    const waits = vi.waitFor(async () => expect(await waitingLocks()).toBeGreaterThan(0), { timeout: 30_000 })
    await Promise.race([other, waits])
  })
  await other
  expect(await db('quarantine').pluck('payload')).toEqual(['second'])

  async function waitingLocks(): Promise<number> {
    const { rows } = await db.raw(`select from pg_locks where locktype = 'advisory' and not granted
      and database = (select oid from pg_database where datname = current_database())`)
    return rows.length
  }
})

describe('more than 1 000 rejected messages', () => {
  const seedMany = (count: number) =>
    api.pod.db.raw(
      `insert into quarantine (received_at, author, host, fault, payload, bytes, is_whole, digest)
       select now(), 'eve@many.example', 'many.example', 'Filtered', '<xml/>', 6, n <> 3, decode(md5(cast(n as text)), 'hex')
       from generate_series(1, ?) as n`,
      [count],
    )
  const outbox = () => api.pod.db('outbox').where({ name: 'receive-public' })
  const choice = { host: 'many.example', reason }

  it('are deleted by an operation in chunks, without those that are received meanwhile', async () => {
    await seedMany(2_300)

    const { status, headers, body } = await adm.post('/quarantine/drop', { ...choice, confirm: '2300' })
    expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
    expect(body).toMatchObject({ kind: 'quarantine.drop', state: 'queued', total: 2_300 })
    expect((await adm.post('/quarantine/drop', { ...choice, confirm: '2300' })).body).toMatchObject({
      ...{ code: 409, reason: 'operation_running' },
    })
    await api.pod.db.raw(
      `insert into quarantine (received_at, host, fault, payload, bytes, is_whole, digest)
       values (now(), 'many.example', 'Filtered', 'x', 1, true, decode(md5('later'), 'hex'))`,
    )
    const chunks: number[] = []
    await finishBackgroundTasks(
      api.pod,
      withChunkStep(quarantineTaskHandlers, ({ done }) => void chunks.push(done)),
    )
    expect(chunks).toEqual([1_000, 1_000, 300, 0])
    expect(await listed()).toHaveLength(1)
    expect((await adm.get('/audit?action=quarantine.drop')).body[0]).toMatchObject({
      ...{ target: { label: 'many.example' }, after: { count: 2_300 } },
    })
  })

  it.each([
    ['replay', false],
    ['release', true],
  ])('are received again by the operation %s, which continues after a crash', async (name, isReleased) => {
    await seedMany(1_500)
    await outbox().delete()

    const { body } = await adm.post(`/quarantine/${name}`, choice)
    await expect(finishBackgroundTasks(api.pod, crashInChunk(quarantineTaskHandlers, 2))).rejects.toThrow(
      'the worker dies',
    )
    expect(await outbox()).toHaveLength(999)
    await finishBackgroundTasks(api.pod, quarantineTaskHandlers)

    expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 1_499, skipped: 1 })
    expect(await outbox().whereRaw(`(data ->> 'isReleased')::boolean = ?`, [isReleased])).toHaveLength(1_499)
    await outbox().delete()
  })
})
