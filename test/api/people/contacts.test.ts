import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { CONCURRENT_REQUESTS, countStatuses } from '../../support/assertions/concurrent-requests.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, type ApiResponse, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { aspectOf, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let dan: ApiPerson
  /** Two of Alice's aspects. */
  let work: number
  let family: number
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend, environment: { DATABASE_POOL: '20' } })
    ;({ alice, dan } = api)
    work = await aspectOf(api, alice, 'Work')
    family = await aspectOf(api, alice, 'Family')
  })
  afterAll(() => api.close())
  /** Nothing is between Alice and Dan. */
  beforeEach(async () => {
    for (const [who, whom] of [
      [alice, dan],
      [dan, alice],
    ] as const) {
      await api.pod.db('contacts').where({ userId: who.viewer.userId, personId: whom.viewer.personId }).delete()
    }
    await api.pod.db('notifications').delete()
    await api.pod.db('outbox').delete()
  })

  const add = (aspect: number | string, person: string, who = alice) =>
    who.post(`/aspects/${aspect}/contacts`, { person_guid: person })
  const remove = (aspect: number | string, person: string, who = alice) =>
    who.delete(`/aspects/${aspect}/contacts/${person}`)
  const relation = async (who: ApiPerson, whom: string) => {
    const { relationship, aspects } = (await who.get(`/users/${whom}`)).body
    return { ...relationship, aspects: aspects.map(({ id }: { readonly id: number }) => id) }
  }
  const news = async (who: ApiPerson) => {
    const notifications: ApiResponse['body'][] = (await who.get('/notifications')).body
    return notifications.map(({ type, read, event_creators: [creator] }) => [type, read, creator.guid])
  }
  const listDispatches = () => api.pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')

  describe('adding a person to an aspect', () => {
    it.each(['person_guid', 'person'])('is done once, by %s', async (field) => {
      const answer = await alice.post(`/aspects/${work}/contacts`, { [field]: dan.guid })

      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(await relation(alice, dan.guid)).toEqual({ receiving: true, sharing: false, aspects: [work] })
      expect(await relation(dan, alice.guid)).toEqual({ receiving: false, sharing: true, aspects: [] })
      expectError(await alice.post(`/aspects/${work}/contacts`, { [field]: dan.guid }), 422)
    })

    it('accepts a form', async () => {
      const answer = await api.call({
        method: 'POST',
        path: `/aspects/${work}/contacts`,
        token: alice.token,
        body: `person_guid=${dan.guid}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })

      expect(answer.status).toBe(204)
    })

    it('notifies the person once', async () => {
      const friends = await aspectOf(api, dan, 'Friends')

      expect((await add(friends, alice.guid, dan)).status).toBe(204)

      const [notification] = (await alice.get('/notifications')).body
      expect(notification).toMatchObject({ type: 'started_sharing', read: false, event_creators: [{ guid: dan.guid }] })
      expect(notification).not.toHaveProperty('target')
    })

    it('a second aspect causes no second notification', async () => {
      await add(await aspectOf(api, dan, 'Friends'), alice.guid, dan)
      const { body: before } = await alice.get('/notifications')

      expect((await add(await aspectOf(api, dan, 'Work'), alice.guid, dan)).status).toBe(204)

      expect((await alice.get('/notifications')).body).toEqual(before)
    })

    it('marks the notification about that person as read', async () => {
      await add(await aspectOf(api, dan, 'Friends'), alice.guid, dan)
      await add(await aspectOf(api, api.eve, 'Friends'), alice.guid, api.eve)
      expect(await news(alice)).toEqual([
        ['started_sharing', false, api.eve.guid],
        ['started_sharing', false, dan.guid],
      ])

      await add(work, dan.guid)

      expect(await news(alice)).toEqual([
        ['started_sharing', false, api.eve.guid],
        ['started_sharing', true, dan.guid],
      ])
      await remove(await aspectOf(api, api.eve, 'Friends'), alice.guid, api.eve)
    })

    it('notifies a remote person and sends the profile, with the first aspect only', async () => {
      const quin = await addRemotePerson(api.pod, `${newGuid()}@q.example`)

      await add(work, quin.guid)
      await add(family, quin.guid)

      expect(await listDispatches()).toEqual([
        { record: 'contact', userId: alice.viewer.userId, personId: quin.id, sharing: true, blocking: false },
        { record: 'profile', personId: alice.viewer.personId, to: quin.id },
      ])
    })

    it('refuses people who cannot be in an aspect', async () => {
      await closeUser(api.pod, (await api.people('zoe')).zoe.address.replace(/@.*/, ''))
      const { zoe } = await api.people('zoe')

      for (const guid of [newGuid(), alice.guid, zoe.guid, '', 'x'.repeat(10_000), 'a\0']) {
        expectError(await add(work, guid), 422)
      }
      for (const body of [
        {},
        undefined,
        { person_guid: 5 },
        { person: null },
        { person_guid: [dan.guid] },
        { people: 1 },
      ]) {
        expectError(await alice.post(`/aspects/${work}/contacts`, body), 422)
      }
      expect(await relation(alice, dan.guid)).toEqual({ receiving: false, sharing: false, aspects: [] })
    })

    it('a person blocked by the user is rejected', async () => {
      await alice.post(`/users/${api.bob.guid}/block`)

      expectError(await add(api.friendsAspectId, api.bob.guid), 422)

      await alice.delete(`/users/${api.bob.guid}/block`)
      expect(await relation(alice, api.bob.guid)).toEqual({ receiving: false, sharing: true, aspects: [] })
      expect((await add(api.friendsAspectId, api.bob.guid)).status).toBe(204)
    })

    it('answers 404 for aspects of other users before any other error', async () => {
      const theirs = await aspectOf(api, dan, 'Work')
      for (const aspect of [theirs, 0, 'x', '9'.repeat(40), '%00']) {
        expectError(await add(aspect, dan.guid), 404)
        expectError(await add(aspect, newGuid()), 404)
        expectError(await alice.post(`/aspects/${aspect}/contacts`, { person_guid: 5 }), 404)
      }
      expect(await relation(alice, dan.guid)).toEqual({ receiving: false, sharing: false, aspects: [] })
    })
  })

  describe('removing a person from an aspect', () => {
    it('a second request is refused', async () => {
      await add(work, dan.guid)

      const answer = await remove(work, dan.guid)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expectError(await remove(work, dan.guid), 404)
      expect(await relation(alice, dan.guid)).toEqual({ receiving: false, sharing: false, aspects: [] })
      expect(await news(dan)).toEqual([])
    })

    it('keeps sharing with people who are in another aspect', async () => {
      await add(work, dan.guid)
      await add(family, dan.guid)

      await remove(work, dan.guid)

      expect(await relation(alice, dan.guid)).toEqual({ receiving: true, sharing: false, aspects: [family] })
      expect(await news(dan)).toEqual([['started_sharing', false, alice.guid]])
    })

    it('the person’s own sharing stays', async () => {
      await add(work, dan.guid)
      await add(await aspectOf(api, dan, 'Friends'), alice.guid, dan)

      await remove(work, dan.guid)

      expect(await relation(alice, dan.guid)).toEqual({ receiving: false, sharing: true, aspects: [] })
      expect(await relation(dan, alice.guid)).toMatchObject({ receiving: true, sharing: false })
    })

    it('notifies a remote person with the last aspect only', async () => {
      const quin = await addRemotePerson(api.pod, `${newGuid()}@q.example`)
      await add(work, quin.guid)
      await add(family, quin.guid)
      await api.pod.db('outbox').delete()

      await remove(work, quin.guid)
      expect(await listDispatches()).toEqual([])
      await remove(family, quin.guid)

      expect(await listDispatches()).toEqual([
        { record: 'contact', userId: alice.viewer.userId, personId: quin.id, sharing: false, blocking: false },
      ])
    })

    it('answers 404 for other aspects and for people outside the aspect', async () => {
      const theirs = await aspectOf(api, dan, 'Work')
      for (const aspect of [theirs, 0, 'x']) expectError(await remove(aspect, dan.guid), 404)
      expectError(await remove(work, dan.guid), 404)
      expectError(await remove(work, api.bob.guid), 404)
      for (const guid of [newGuid(), 'x', 'a%2Fb']) expectError(await remove(work, guid), 422)
    })
  })

  describe('many times at once', () => {
    it('adding a person to an aspect happens once and notifies once', async () => {
      expect(await countStatuses(() => add(work, dan.guid))).toEqual({ 204: 1, 422: CONCURRENT_REQUESTS - 1 })
      expect(await news(dan)).toEqual([['started_sharing', false, alice.guid]])

      expect(await countStatuses(() => remove(work, dan.guid))).toEqual({ 204: 1, 404: CONCURRENT_REQUESTS - 1 })
      expect(await news(dan)).toEqual([])
    })

    it('adding a person to two aspects notifies once, and removal from both ends sharing', async () => {
      const aspects = [work, family]

      const statuses = await countStatuses((number) => add(aspects[number % 2] ?? 0, dan.guid))
      expect(statuses).toEqual({ 204: 2, 422: CONCURRENT_REQUESTS - 2 })
      expect(await news(dan)).toHaveLength(1)

      const removed = await countStatuses((number) => remove(aspects[number % 2] ?? 0, dan.guid))
      expect(removed).toEqual({ 204: 2, 404: CONCURRENT_REQUESTS - 2 })
      expect(await relation(alice, dan.guid)).toEqual({ receiving: false, sharing: false, aspects: [] })
    })

    it('two people may begin and cease to share with each other', async () => {
      const theirs = await aspectOf(api, dan, 'Friends')

      const statuses = await countStatuses((number) => {
        const [who, aspect, whom] = number % 2 === 0 ? ([alice, work, dan] as const) : ([dan, theirs, alice] as const)
        return number % 4 < 2 ? add(aspect, whom.guid, who) : remove(aspect, whom.guid, who)
      })

      expect(Object.keys(statuses).filter((status) => !['204', '404', '422'].includes(status))).toEqual([])
      const [one, other] = [await relation(alice, dan.guid), await relation(dan, alice.guid)]
      expect([one.receiving, one.sharing]).toEqual([other.sharing, other.receiving])
      expect([one.aspects.length, other.aspects.length]).toEqual([Number(one.receiving), Number(other.receiving)])
    })
  })
})

describe('the lists of contacts', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  /** In order: by first name, last name and address. */
  let inOrder: readonly string[]
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice } = api)
    const names: readonly (readonly (string | undefined)[])[] = [
      ['ann', 'Zed'],
      ['Ann Marie', 'Berg'],
      ['Ben'],
      ['ben', 'berg'],
      ['Éva', 'Berg'],
      [undefined, 'Berg'],
      [],
      [],
    ]
    const people: string[] = []
    for (const [number, [firstName, lastName]] of names.entries()) {
      const profile = { firstName: firstName ?? null, lastName: lastName ?? null }
      const person = await addRemotePerson(api.pod, `p${number}@q.example`, { profile })
      await share(api, alice, person, 'Work')
      people.push(person.address)
    }
    const [ann, annMarie, ben, benBerg, eva, berg, ...nameless] = people
    inOrder = [ann, annMarie, benBerg, ben, eva, berg, ...nameless].map((address) => address ?? '')
  })
  afterAll(() => api.close())

  const addresses = (people: ApiResponse['body'][]) => people.map(({ network_id }) => network_id)

  it('the list of an aspect has its members in the usual form of a person', async () => {
    const { status, body } = await alice.get(`/aspects/${await aspectOf(api, alice, 'Work')}/contacts`)

    expect(status).toBe(200)
    expect(addresses(body)).toEqual(inOrder)
    expect(body[0]).toEqual({
      guid: expect.any(String),
      network_id: 'p0@q.example',
      diaspora_id: 'p0@q.example',
      name: 'ann Zed',
      avatar: expect.stringContaining('/images/user/default.png'),
    })
    expect(addresses((await alice.get(`/aspects/${api.friendsAspectId}/contacts`)).body)).toEqual([api.bob.address])
    expect((await alice.get(`/aspects/${await aspectOf(api, alice, 'Family')}/contacts`)).body).toEqual([])
  })

  it('the user’s own list has all contacts in either direction, in pages', async () => {
    const path = `/users/${alice.guid}/contacts`
    const all = [...inOrder.slice(0, 6), api.bob.address, api.carol.address, ...inOrder.slice(6)]

    expect(addresses((await alice.get(path)).body)).toEqual(all)
    for (const items of [1, 3, 5])
      expect(addresses(await readAllPages(alice, `${path}?per_page=${items}`))).toEqual(all)
    const second = await alice.get(`${path}?per_page=9&page=2`)
    expect(second.links).toEqual({ previous: expect.stringContaining('page=1') })
    expect((await alice.get(`${path}?page=3`)).body).toEqual([])
  })

  it('contacts and aspects of other users are a 404', async () => {
    const theirs = await aspectOf(api, api.bob, 'Friends')
    for (const guid of [api.bob.guid, newGuid(), 'x', '%00']) {
      expectError(await alice.get(`/users/${guid}/contacts`), 404)
      expectError(await alice.get(`/users/${guid}/contacts?page=x`), 404)
    }
    for (const aspect of [theirs, 0, 'x', '1.0']) {
      expectError(await alice.get(`/aspects/${aspect}/contacts`), 404)
      expectError(await alice.get(`/aspects/${aspect}/contacts?page=x`), 404)
    }
    expectError(await alice.get(`/users/${alice.guid}/contacts?page=x`), 422)
    expectError(await alice.get(`/aspects/${api.friendsAspectId}/contacts?per_page=x`), 422)
  })

  it('takes at most three statements, for any length', async () => {
    expect(await statementsDuring(() => alice.get(`/users/${alice.guid}/contacts`))).toBe(3)
    expect(await statementsDuring(() => alice.get(`/aspects/${api.friendsAspectId}/contacts`))).toBe(3)
  })

  it('answers 403 for tokens with other scopes', async () => {
    const reader = await alice.with('contacts:read')
    const writer = await alice.with('contacts:modify')
    expectError(await writer.get(`/users/${alice.guid}/contacts`), 403)
    expectError(await writer.get(`/aspects/${api.friendsAspectId}/contacts`), 403)
    expectError(await reader.post(`/aspects/${api.friendsAspectId}/contacts`, { person_guid: api.dan.guid }), 403)
    expectError(await reader.delete(`/aspects/${api.friendsAspectId}/contacts/${api.bob.guid}`), 403)
  })
})
