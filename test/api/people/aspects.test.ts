import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LIST_LIMITS } from '../../../src/domain/limits.js'
import { User } from '../../../src/persistence/models/user.js'
import { CONCURRENT_REQUESTS, countStatuses } from '../../support/assertions/concurrent-requests.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, type ApiResponse, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { aspectOf, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

let api: SampleApiPod
let alice: ApiPerson
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { DATABASE_POOL: '20' } })
  ;({ alice } = api)
})
afterAll(() => api.close())

/** As she has them at the beginning. */
const FIRST = ['Family', 'Friends', 'Work', 'Acquaintances']

beforeEach(async () => {
  await api.pod.db('aspects').where({ userId: alice.viewer.userId }).whereNotIn('name', FIRST).delete()
  for (const [index, name] of FIRST.entries()) {
    await api.pod
      .db('aspects')
      .where({ userId: alice.viewer.userId, name })
      .update({ position: index + 1 })
  }
})

const create = async (name: string): Promise<number> => {
  const { status, body } = await alice.post('/aspects', { name })
  expect(status).toBe(200)
  return body.id
}
const listInOrder = async (): Promise<[string, number][]> => {
  const aspects: ApiResponse['body'][] = (await alice.get('/aspects')).body
  return aspects.map(({ name, order }) => [name, order])
}
const listNames = async (): Promise<string[]> => (await listInOrder()).map(([name]) => name)
const form = (method: 'POST' | 'PATCH', path: string, body: string) =>
  api.call({
    method,
    path,
    token: alice.token,
    body,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })

describe('a new aspect', () => {
  it('is added after the others, with a numeric id', async () => {
    const answer = await alice.post('/aspects', { name: 'Choir' })

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ id: expect.any(Number), name: 'Choir', order: 5 })
    expect((await alice.get(`/aspects/${answer.body.id}`)).body).toEqual(answer.body)
    expect(await listInOrder()).toEqual([...FIRST.map((name, index) => [name, index + 1]), ['Choir', 5]])
  })

  it('is refused beyond the limit of an account', async () => {
    const rows = Array.from({ length: LIST_LIMITS.aspects - FIRST.length }, (_, index) => ({
      userId: alice.viewer.userId,
      name: `Choir ${index}`,
      position: 5 + index,
    }))
    await api.pod.db('aspects').insert(rows)
    expectError(await alice.post('/aspects', { name: 'One more' }), 422)
    await api.pod.db('aspects').where({ name: 'Choir 0' }).delete()
    expect((await alice.post('/aspects', { name: 'One more' })).status).toBe(200)
  })

  it('has a unique name, regardless of case', async () => {
    await create('Chör')

    for (const name of ['Chör', 'chÖR', ' CHÖR ', 'friends']) expectError(await alice.post('/aspects', { name }), 422)
    expect((await api.bob.post('/aspects', { name: 'Chör' })).status).toBe(200)
    await api.pod.db('aspects').where({ userId: api.bob.viewer.userId, name: 'Chör' }).delete()
  })

  it('has a name of 1 to 20 characters', async () => {
    for (const name of ['', '   ', 'x'.repeat(21), '\0', 'a\ud800', 5, null, ['Choir'], {}]) {
      expectError(await alice.post('/aspects', { name }), 422)
    }
    expectError(await alice.post('/aspects', {}), 422)
    expectError(await alice.post('/aspects'), 422)
    expectError(await alice.post('/aspects', '{'), 415)
    expect(await listNames()).toEqual(FIRST)

    expect((await alice.post('/aspects', { name: '🦊'.repeat(20) })).status).toBe(200)
    expect((await alice.post('/aspects', { name: `  ${'x'.repeat(20)}\n` })).body.name).toBe('x'.repeat(20))
  })

  it('accepts a form', async () => {
    expect((await form('POST', '/aspects', 'name=Choir+%26+Co')).body.name).toBe('Choir & Co')
  })

  it('concurrent requests for the same aspect create it once', async () => {
    const statuses = await countStatuses((number) =>
      alice.post('/aspects', { name: number % 2 === 0 ? 'Choir' : 'CHOIR' }),
    )

    expect(statuses).toEqual({ 200: 1, 422: CONCURRENT_REQUESTS - 1 })
    expect((await listNames()).map((name) => name.toLowerCase()).filter((name) => name === 'choir')).toHaveLength(1)
  })

  it('concurrent requests create aspects with distinct positions', async () => {
    const statuses = await countStatuses((number) => alice.post('/aspects', { name: `Choir ${number}` }))

    expect(statuses).toEqual({ 200: CONCURRENT_REQUESTS })
    const aspects = await readAllPages(alice, '/aspects?per_page=7')
    expect(aspects.map(({ order }) => order)).toEqual(
      Array.from({ length: 4 + CONCURRENT_REQUESTS }, (_, index) => index + 1),
    )
  })
})

describe('the list of aspects', () => {
  it('is paged, in order', async () => {
    for (let number = 0; number < 5; number += 1) await create(`Choir ${number}`)

    const first = await alice.get('/aspects?per_page=4')
    expect(first.links).toEqual({ next: expect.stringContaining('page=2') })
    const last = await alice.get('/aspects?per_page=4&page=3')
    expect(last.links).toEqual({ previous: expect.stringContaining('page=2') })
    expect((await readAllPages(alice, '/aspects?per_page=4')).map(({ order }) => order)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9,
    ])
    expect((await alice.get('/aspects?page=9')).body).toEqual([])
    for (const query of ['page=x', 'per_page=1.5', 'page[]=2&page[]=3&page=']) {
      expectError(await alice.get(`/aspects?${query}`), 422)
    }
  })

  it('costs two statements: authentication and the list', async () => {
    expect(await statementsDuring(() => alice.get('/aspects'))).toBe(2)
  })
})

describe('renaming an aspect', () => {
  it('returns the renamed aspect, also if only the case changes', async () => {
    const id = await create('Choir')

    for (const name of ['Singers', 'SINGERS']) {
      const answer = await alice.patch(`/aspects/${id}`, { name })
      expect(answer).toMatchObject({ status: 200, body: { id, name, order: 5 } })
    }
    expect((await alice.put(`/aspects/${id}`, { name: 'Choir' })).body).toMatchObject({ name: 'Choir' })
  })

  it('refuses names that a new aspect cannot have, and changes nothing', async () => {
    const id = await create('Choir')

    for (const name of ['Friends', 'fRIENDS', ' ', 'x'.repeat(21), null, 5]) {
      expectError(await alice.patch(`/aspects/${id}`, { name, order: 1 }), 422)
    }
    expect((await alice.get(`/aspects/${id}`)).body).toEqual({ id, name: 'Choir', order: 5 })
  })

  it('answers 404 for unknown aspects and those of other users', async () => {
    const theirs = await aspectOf(api, api.bob, 'Friends')
    for (const id of ['0', '999999999', theirs, '-1', 'x', '1e3', '9'.repeat(30), '%00', '1.0', ' 1']) {
      expectError(await alice.get(`/aspects/${id}`), 404)
      expectError(await alice.patch(`/aspects/${id}`, { name: 'Choir' }), 404)
      expectError(await alice.patch(`/aspects/${id}`, { name: 5 }), 404)
      expectError(await alice.put(`/aspects/${id}`, {}), 404)
    }
  })

  it('an empty change leaves the aspect unchanged', async () => {
    const id = await create('Choir')

    for (const body of [{}, undefined, { id: 5, unknown: true }]) {
      const answer = await alice.patch(`/aspects/${id}`, body)
      expect(answer).toMatchObject({ status: 200, body: { id, name: 'Choir', order: 5 } })
    }
  })

  it('only one of concurrent renames to one name succeeds', async () => {
    const ids: number[] = []
    for (let number = 0; number < CONCURRENT_REQUESTS; number += 1) ids.push(await create(`Choir ${number}`))

    const statuses = await countStatuses((number) => alice.patch(`/aspects/${ids[number]}`, { name: 'Singers' }))

    expect(statuses).toEqual({ 200: 1, 422: CONCURRENT_REQUESTS - 1 })
  })
})

describe('moving an aspect', () => {
  const move = async (name: string, order: unknown) =>
    alice.patch(`/aspects/${await aspectOf(api, alice, name)}`, { order })

  it.each<[string, number, string[]]>([
    ['Acquaintances', 1, ['Acquaintances', 'Family', 'Friends', 'Work']],
    ['Acquaintances', 2, ['Family', 'Acquaintances', 'Friends', 'Work']],
    ['Family', 3, ['Friends', 'Work', 'Family', 'Acquaintances']],
    ['Family', 4, ['Friends', 'Work', 'Acquaintances', 'Family']],
    ['Work', 3, FIRST],
  ])('moves %s to position %d and renumbers the others', async (name, order, expected) => {
    expect((await move(name, order)).body).toMatchObject({ name, order })

    expect(await listInOrder()).toEqual(expected.map((each, index) => [each, index + 1]))
  })

  it('a position beyond the end moves the aspect to the end', async () => {
    expect((await move('Family', 999_999_999)).body.order).toBe(999_999_999)
    expect(await listInOrder()).toEqual([
      ['Friends', 1],
      ['Work', 2],
      ['Acquaintances', 3],
      ['Family', 999_999_999],
    ])
    expect((await move('Work', 0)).body.order).toBe(0)
    expect(await listNames()).toEqual(['Work', 'Friends', 'Acquaintances', 'Family'])
  })

  it('refuses invalid positions', async () => {
    for (const order of [-1, 1.5, 1e9, 2 ** 53, '', 'x', '-1', '1.0', null, true, [1], {}]) {
      expectError(await move('Family', order), 422)
    }
    expect(await listNames()).toEqual(FIRST)
  })

  it('a form may set the new name', async () => {
    const answer = await form('PATCH', `/aspects/${await aspectOf(api, alice, 'Work')}`, 'order=1&name=Job')

    expect(answer.body).toMatchObject({ name: 'Job', order: 1 })
    expect(await listNames()).toEqual(['Job', 'Family', 'Friends', 'Acquaintances'])
    await alice.patch(`/aspects/${answer.body.id}`, { name: 'Work' })
  })

  it('concurrent moves, creations and deletions leave distinct positions', async () => {
    const ids: number[] = []
    for (let number = 0; number < 8; number += 1) ids.push(await create(`Choir ${number}`))

    const statuses = await countStatuses((number) => {
      const id = ids[number % ids.length]
      if (number % 10 === 8) return alice.post('/aspects', { name: `Band ${number}` })
      if (number % 10 === 9) return alice.delete(`/aspects/${ids[7]}`)
      return alice.patch(`/aspects/${id}`, { order: 1 + ((number * 7) % 12) })
    })

    const { 200: done = 0, 204: deleted, 404: late = 0, 422: again } = statuses
    const [creations, deletions] = [CONCURRENT_REQUESTS / 10, CONCURRENT_REQUESTS / 10]
    expect([deleted, again, done + late]).toEqual([1, deletions - 1, CONCURRENT_REQUESTS - deletions])
    const orders = (await readAllPages(alice, '/aspects')).map(({ order }) => order)
    expect(orders).toEqual([...new Set(orders)].sort((one, other) => one - other))
    expect(orders).toHaveLength(4 + 7 + creations)
  })
})

it('answers 403 for tokens with other scopes', async () => {
  const reader = await alice.with('contacts:read')
  const writer = await alice.with('contacts:modify')
  expectError(await writer.get('/aspects'), 403)
  expectError(await writer.get(`/aspects/${api.friendsAspectId}`), 403)
  expectError(await reader.post('/aspects', { name: 'Choir' }), 403)
  expectError(await reader.patch(`/aspects/${api.friendsAspectId}`, { name: 'Choir' }), 403)
  expectError(await reader.delete(`/aspects/${api.friendsAspectId}`), 403)
})

describe.each(queueBackends)('deleting an aspect, with the queue in $store', (backend) => {
  let there: SampleApiPod
  beforeAll(async () => {
    there = await startSampleApiPod({ queue: backend })
  })
  afterAll(() => there.close())

  it('deletes the own aspect once; other aspects are a 404', async () => {
    const { body } = await there.alice.post('/aspects', { name: 'Choir' })

    expectError(await there.bob.delete(`/aspects/${body.id}`), 422)
    const answer = await there.alice.delete(`/aspects/${body.id}`)
    expect([answer.status, answer.text]).toEqual([204, ''])
    for (const id of [body.id, 0, 'x', '9'.repeat(40), '-1'])
      expectError(await there.alice.delete(`/aspects/${id}`), 422)
  })

  it('does not block on aspects of other users', async () => {
    const { alice, bob, carol } = there
    await share(there, bob, carol, 'Friends')
    const busy = await there.pod.db.transaction()
    await User.lock(busy, carol.viewer.userId)
    try {
      expectError(await alice.delete(`/aspects/${await aspectOf(there, bob, 'Friends')}`), 422)
    } finally {
      await busy.rollback()
    }
  })

  it('ends sharing with members who are in no other aspect', async () => {
    const { body: choir } = await there.alice.post('/aspects', { name: 'Choir' })
    for (const person of [there.dan, there.bob]) {
      const answer = await there.alice.post(`/aspects/${choir.id}/contacts`, { person_guid: person.guid })
      expect(answer.status).toBe(204)
    }
    expect((await there.dan.get('/notifications')).body).toMatchObject([{ type: 'started_sharing' }])

    expect((await there.alice.delete(`/aspects/${choir.id}`)).status).toBe(204)

    const relationTo = async (guid: string) => (await there.alice.get(`/users/${guid}`)).body.relationship
    expect(await relationTo(there.dan.guid)).toEqual({ receiving: false, sharing: false })
    expect(await relationTo(there.bob.guid)).toEqual({ receiving: true, sharing: true })
    expect((await there.dan.get('/notifications')).body).toEqual([])
    expect((await there.dan.get(`/users/${there.dan.guid}/contacts`)).body).toEqual([])
  })

  it('keeps posts already shared with the members', async () => {
    const { body: choir } = await there.alice.post('/aspects', { name: 'Choir' })
    await share(there, there.alice, there.eve, 'Choir')
    const { body: post } = await there.alice.post('/posts', { body: 'For you', public: false, aspects: [choir.id] })

    await there.alice.delete(`/aspects/${choir.id}`)

    expect((await there.eve.get(`/posts/${post.guid}`)).body.body).toBe('For you')
  })

  it('notifies the pods of remote members', async () => {
    const quin = await addRemotePerson(there.pod, 'quin@q.example')
    const { body: choir } = await there.alice.post('/aspects', { name: 'Choir' })
    await there.alice.post(`/aspects/${choir.id}/contacts`, { person_guid: quin.guid })
    await there.pod.db('outbox').delete()

    await there.alice.delete(`/aspects/${choir.id}`)

    expect(await there.pod.db('outbox').where({ name: 'dispatch' }).pluck('data')).toEqual([
      { record: 'contact', userId: there.alice.viewer.userId, personId: quin.id, sharing: false, blocking: false },
    ])
  })
})
