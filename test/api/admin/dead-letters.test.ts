import { createPrivateKey } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { deadLetterTaskHandlers, dropConfirmed } from '../../../src/domain/operations/dead-letters.js'
import { signMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { changeAfterQuery } from '../../support/databases/after-query.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { crashInChunk, finishBackgroundTasks, withChunkStep } from '../../support/pods/finish-background-tasks.js'
import { readKey } from '../../support/pods/fixed-key-crypto.js'

let api: ApiPod
let adm: StaffClient
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '0' } })
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())
beforeEach(async () => {
  await api.pod.db('outbox').delete()
  await api.pod.db('outbound_messages').delete()
})

const reason = 'The cause is repaired'
const SECRET = 'the secret text of a message'

/** A message that was discarded, a fetch that failed, and a delivery that was refused; an hour between them. */
async function seed(): Promise<void> {
  const { db } = api.pod
  const [{ id: podId }] = await db('pods')
    .insert({ host: 'far.example' })
    .onConflict(['host', 'port'])
    .merge(['host'])
    .returning('id')
  const at = (hour: number) => new Date(Date.UTC(2026, 0, 1, hour, 30))
  await db('outbox').insert({
    ...{
      queue: 'inbound',
      name: 'receive-public',
      payload: SECRET,
      acceptedAt: at(1),
      failedAt: at(1),
      createdAt: at(0),
    },
    data: JSON.stringify({ recipientGuid: null, times: 0, last: false, fault: 'discarded' }),
  })
  await db('outbox').insert({
    ...{ queue: 'fetch', name: 'fetch-entity', failedAt: at(2), createdAt: at(0) },
    data: JSON.stringify({ type: 'post', guid: 'g'.repeat(32), from: 'quin@far.example', fault: 'DiscoveryFailed' }),
  })
  const author = await db('people').where({ guid: adm.person.guid }).first('id')
  const [{ id: messageId }] = await db('outbound_messages')
    .insert({
      record: 'comment',
      guid: newGuid(),
      verb: 'create',
      senderId: author.id,
      public: true,
      entity: SECRET,
    })
    .returning('id')
  await db('deliveries').insert({
    ...{ messageId, podId, state: 'dead', lastFault: 'refused', lastStatus: 422, attempts: 3 },
    ...{ diedAt: at(3), createdAt: at(0) },
  })
}

const list = async (query = '') => (await adm.get(`/dead_letters${query}`)).body
const idsOf = async (query: string) => (await list(query)).map(({ id }: { id: string }) => id.replace(/\d+/, 'n'))

describe('dead letters', () => {
  it('are listed latest first without their content, page by page', async () => {
    await seed()

    expect(await list()).toMatchObject([
      { queue: 'outbound', name: 'deliver', fault: 'refused', pod: 'far.example', entity: 'comment', attempts: 3 },
      { queue: 'fetch', fault: 'DiscoveryFailed', pod: 'far.example', entity: 'post', guid: 'g'.repeat(32) },
      { queue: 'inbound', fault: 'discarded', pod: null, entity: null, last_at: '2026-01-01T01:30:00.000Z' },
    ])
    expect(JSON.stringify(await list())).not.toContain(SECRET)
    const first = await adm.get('/dead_letters?per_page=2')
    expect([...first.body, ...(await adm.get(first.links.next ?? '')).body]).toEqual(await list())
  })

  it.each([
    ['queue=fetch', ['outbox-n']],
    ['fault=refused', ['delivery-n']],
    ['pod=FAR.example', ['delivery-n', 'outbox-n']],
    ['pod=other.example', []],
    ['entity=comment', ['delivery-n']],
    ['since=2026-01-01T02:00Z&until=2026-01-01T03:00Z', ['outbox-n']],
  ])('are selected by %s', async (query, ids) => {
    await seed()
    expect(await idsOf(`?${query}`)).toEqual(ids)
  })

  it.each([
    ['queue', ['fetch', 'inbound', 'outbound']],
    ['fault', ['DiscoveryFailed', 'discarded', 'refused']],
    ['pod', ['far.example', null]],
    ['entity', ['comment', 'post', null]],
    ['hour', ['2026-01-01T01:00:00Z', '2026-01-01T02:00:00Z', '2026-01-01T03:00:00Z']],
  ])('are counted by %s', async (by, values) => {
    await seed()
    const { groups } = await list(`?group_by=${by}`)
    expect(groups.map(({ value }: { value: string | null }) => value).toSorted()).toEqual(values.toSorted())
    expect(groups.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).toBe(3)
  })

  it('are read, replayed and deleted by id or by filter, with audit entries', async () => {
    await seed()
    const [delivery, fetch, message] = await list()

    expect((await adm.get(`/dead_letters/${fetch.id}`)).body).toEqual(fetch)
    expect((await adm.get('/dead_letters/outbox-0')).body).toMatchObject({ code: 404, reason: 'dead_letter_not_found' })
    expect((await adm.post('/dead_letters/replay', { reason })).body).toMatchObject({ code: 422, field: 'ids' })
    expect((await adm.post('/dead_letters/replay', { id: message.id, reason })).body).toEqual({ count: 1 })
    expect(await api.pod.db('outbox').where({ name: 'receive-public' }).select('failedAt', 'payload', 'data')).toEqual([
      { failedAt: null, payload: SECRET, data: { recipientGuid: null, times: 0, last: false } },
    ])
    expect((await adm.post('/dead_letters/drop', { pod: 'far.example', reason })).body).toMatchObject({
      reason: 'confirmation_needed',
      preview: { dead_letters: 2 },
    })
    expect((await adm.post('/dead_letters/drop', { pod: 'far.example', reason, confirm: '2' })).body).toEqual({
      count: 2,
    })
    expect(await list()).toEqual([])
    expect(delivery.id).toMatch(/^delivery-/)
    expect((await adm.get('/audit?action=dead_letters.drop&action=dead_letters.replay')).body).toMatchObject([
      { action: 'dead_letters.drop', target: { label: 'far.example' }, after: { count: 2 }, reason },
      { action: 'dead_letters.replay', target: { label: message.id }, after: { count: 1 } },
    ])
  })

  it('show public content decoded and cut, and of private content and other jobs no text', async () => {
    await seed()
    const { db } = api.pod
    const key = createPrivateKey(readKey('4.private.pem'))
    const entity = `<status_message><text>${'long '.repeat(1_000)}&lt;script&gt;</text></status_message>`
    const data = {
      recipientGuid: null,
      times: 0,
      last: false,
      fault: 'discarded',
      token: SECRET,
      address: 'a@mail.example',
    }
    await db('outbox')
      .where({ name: 'receive-public' })
      .update({
        payload: signMagicEnvelope(entity, 'quin@far.example', key),
        data: JSON.stringify(data),
      })
    await db('outboundMessages').update({ public: false })
    const recipient = await addRemotePerson(api.pod, 'rita@far.example')
    await db('deliveries').update({ personId: recipient.id })
    const [delivery, , message] = await list()
    const payloadOf = async (id: string) => {
      const headers = { authorization: `Bearer ${adm.token}` }
      return (await api.app.inject({ url: `/api/admin/v1/dead_letters/${id}/payload`, headers })).body
    }

    const shown = await payloadOf(message.id)
    expect(shown).toContain('<status_message><text>long long')
    expect(shown).toContain('… (5')
    expect(shown).not.toContain('&lt;script')
    for (const hidden of [SECRET, 'a@mail.example']) expect(shown).not.toContain(hidden)
    const ofDelivery = await payloadOf(delivery.id)
    expect(ofDelivery).toMatch(/fault: refused\n.*\nbytes: \d+\ndigest: [0-9a-f]{64}\n/)
    expect(ofDelivery).toContain(`recipient_guid: ${recipient.guid}`)
    for (const hidden of [SECRET, 'rita@']) expect(ofDelivery).not.toContain(hidden)
    expect((await adm.get('/audit?action=dead_letters.payload')).body).toMatchObject([
      { target: { label: delivery.id } },
      { target: { label: message.id } },
    ])
  })

  it('show which entities a job of waiting messages is about', async () => {
    const entityKeys = [`post:${'a'.repeat(32)}`]
    const row = { queue: 'maintenance', name: 'wake-waiting', data: JSON.stringify({ entityKeys, fault: 'x' }) }
    const [{ id }] = await api.pod
      .db('outbox')
      .insert({ ...row, failedAt: new Date() })
      .returning('id')

    const headers = { authorization: `Bearer ${adm.token}` }
    const { body } = await api.app.inject({ url: `/api/admin/v1/dead_letters/outbox-${id}/payload`, headers })
    expect(body).toContain(JSON.stringify({ entityKeys }).slice(0, -1))
  })

  it('are read, replayed and deleted by several ids', async () => {
    await seed()
    const ids = (await list()).map(({ id }: { id: string }) => id)

    expect((await adm.post('/dead_letters/replay', { ids: [ids[1], 'outbox-0'], reason })).body).toEqual({ count: 1 })
    const drop = await adm.post('/dead_letters/drop', { ids, reason })
    expect(drop.body).toMatchObject({ reason: 'confirmation_needed', preview: { dead_letters: 2 } })
    expect((await adm.post('/dead_letters/drop', { ids, reason, confirm: '2' })).body).toEqual({ count: 2 })
    expect(await list()).toEqual([])
  })

  it('are not deleted without a confirmation if they come after the count', async () => {
    changeAfterQuery(api.pod, '"outbox"', seed)
    const choice = { filter: { queue: 'inbound' as const }, reason }
    expect(await dropConfirmed(api.pod, COMMAND_ACTOR, choice)).toEqual({ count: 0 })

    expect(await list('?queue=inbound')).toHaveLength(1)
  })

  describe('beyond 1 000', () => {
    const discarded = () => api.pod.db('outbox').where({ name: 'receive-public' }).whereNotNull('failedAt')
    const seedMany = (count: number) =>
      api.pod.db.raw(
        `insert into outbox (queue, name, data, payload, accepted_at, failed_at)
         select 'inbound', 'receive-public', '{"fault":"discarded"}', case when number = 1 then null else 'x' end, now(),
           now() - interval '1 hour'
         from generate_series(1, ?) as number`,
        [count],
      )

    it('are deleted by an operation, in chunks of 1 000, and none that fails in the meantime', async () => {
      await seedMany(2_300)

      const { status, headers, body } = await adm.post('/dead_letters/drop', {
        ...{ queue: 'inbound', reason, confirm: '2300' },
      })

      expect([status, headers['location']]).toEqual([202, `/api/admin/v1/operations/${body.id}`])
      expect(body).toMatchObject({ kind: 'dead_letters.drop', state: 'queued', done: 0, total: 2_300 })
      expect(await discarded()).toHaveLength(2_300)
      const again = await adm.post('/dead_letters/drop', { queue: 'inbound', reason, confirm: '2300' })
      expect(again.body).toMatchObject({ code: 409, reason: 'operation_running' })
      await seedMany(1)
      await api.pod.db.raw(`update outbox set failed_at = now() where id = (select max(id) from outbox)`)
      const chunks: number[] = []
      await finishBackgroundTasks(
        api.pod,
        withChunkStep(deadLetterTaskHandlers, ({ done }) => void chunks.push(done)),
      )
      expect(chunks).toEqual([1_000, 1_000, 300, 0])
      expect(await discarded()).toHaveLength(1)
      expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 2_300 })
      expect((await adm.get('/audit?action=dead_letters.drop')).body[0]).toMatchObject({
        target: { label: 'inbound' },
        after: { count: 2_300 },
      })
    })

    it('are replayed by an operation that continues after a crash; those without content are skipped', async () => {
      await seedMany(1_500)

      const { body } = await adm.post('/dead_letters/replay', { queue: 'inbound', reason })
      await expect(finishBackgroundTasks(api.pod, crashInChunk(deadLetterTaskHandlers, 2))).rejects.toThrow(
        'the worker dies',
      )
      expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'running', done: 999, skipped: 1 })
      await finishBackgroundTasks(api.pod, deadLetterTaskHandlers)

      expect((await adm.get(`/operations/${body.id}`)).body).toMatchObject({ state: 'done', done: 1_499, skipped: 1 })
      expect(await discarded()).toHaveLength(1)
    })
  })

  it('are listed with the same number of statements, however many there are', async () => {
    await seed()
    const statements = () => statementsDuring(() => list('?per_page=1'))
    const few = await statements()
    await api.pod.db.raw(
      `insert into outbox (queue, name, data, payload, accepted_at, failed_at)
       select 'inbound', 'receive-public', '{"fault":"discarded"}', 'x', now(), now() from generate_series(1, 2000)`,
    )
    expect(await statements()).toBe(few)
  })
})
