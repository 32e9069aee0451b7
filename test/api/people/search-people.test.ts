import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { QueueUnavailable } from '../../../src/jobs/queues/queue-unavailable.js'
import { openFetchHandlers } from '../../../workers/handlers/fetch.js'
import type { RunningWorkers } from '../../../workers/start-workers.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import {
  type ApiClient,
  type ApiPerson,
  type ApiResponse,
  expectError,
  readAllPages,
} from '../../support/pods/api-pod.js'
import type { PodOptions } from '../../support/pods/build-pod.js'
import { aspectOf, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../../support/queues/test-workers.js'

const addresses = ({ body }: ApiResponse): string[] =>
  body.map(({ network_id }: { readonly network_id: string }) => network_id)

const queryOf = (parameters: Readonly<Record<string, string | number>>) =>
  Object.entries(parameters)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join('&')

const find = (who: ApiClient, parameters: Readonly<Record<string, string | number>>) =>
  who.get(`/search/users?${queryOf(parameters)}`)
const findByName = (who: ApiClient, name_or_handle: string) => find(who, { name_or_handle })

describe('searching for people', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice } = api)
    await api.bob.editProfile({ firstName: 'Bob', lastName: 'Baker', tags: ['bread', 'tea'] })
    await api.carol.editProfile({ firstName: 'Carol Ann', lastName: 'Baker', tags: ['tea'] })
    await api.dan.editProfile({ firstName: 'Дан', lastName: 'Öberg', tags: ['tea'], searchable: false })
    await addRemotePerson(api.pod, 'quin@q.example', { profile: { firstName: 'Quin', lastName: 'van der Baker' } })
    await addRemotePerson(api.pod, 'percent@q.example', { profile: { firstName: '100%_\\sure' } })
  })
  afterAll(() => api.close())

  it('requires a name or a tag, not both', async () => {
    for (const query of ['', '?', '?tag=tea&name_or_handle=bob', '?tag=&name_or_handle=bob', '?name_or_handle[]=bob']) {
      expectError(await alice.get(`/search/users${query}`), 422)
    }
    for (const query of ['name_or_handle=bob&name_or_handle=al', 'tag=a&tag=b', 'name_or_handle=%00', 'tag=%00']) {
      expectError(await alice.get(`/search/users?${query}`), 422)
    }
    for (const query of ['page=x', 'per_page=1e', `page=${'9'.repeat(2_000)}`]) {
      expectError(await alice.get(`/search/users?name_or_handle=bob&${query}`), 422)
    }
  })

  describe('by name', () => {
    it('returns nothing for fewer than two characters', async () => {
      for (const text of ['', ' ', 'b', ' b ', '猫', '𐐀']) {
        expect(await findByName(alice, text)).toMatchObject({ status: 200, body: [] })
      }
    })

    it('finds words in order anywhere in the name, in any case', async () => {
      for (const text of ['bob', 'BAK', 'ob ba', 'b b', 'Bob  Baker', ' ake']) {
        expect(addresses(await findByName(alice, text))).toContain(api.bob.address)
      }
      for (const text of ['baker bob', 'bobb', 'bob%', 'b_b', 'baker@pod']) {
        expect(addresses(await findByName(alice, text))).not.toContain(api.bob.address)
      }
      expect(addresses(await findByName(alice, '100%_\\'))).toEqual(['percent@q.example'])
    })

    it('lists people by name, in the usual form of a person', async () => {
      const answer = await findByName(alice, 'baker')

      expect(addresses(answer)).toEqual([api.bob.address, api.carol.address, 'quin@q.example'])
      expect(answer.body[0]).toEqual({
        guid: api.bob.guid,
        network_id: api.bob.address,
        diaspora_id: api.bob.address,
        name: 'Bob Baker',
        avatar: expect.stringContaining('/images/user/default.png'),
      })
    })

    it('finds the beginning of an address, with and without a name', async () => {
      expect(addresses(await findByName(alice, 'ali'))).toEqual([alice.address])
      expect(addresses(await findByName(alice, 'QUIN@Q.exa'))).toEqual(['quin@q.example'])
      expect(addresses(await findByName(alice, 'lice'))).toEqual([])
      expect(addresses(await findByName(alice, 'pod.example'))).toEqual([])
    })

    it('finds unlisted people among contacts only, with contacts:read', async () => {
      expect(addresses(await findByName(alice, 'дан'))).toEqual([])
      await share(api, alice, api.dan, 'Work')

      expect(addresses(await findByName(alice, 'ДАН ö'))).toEqual([api.dan.address])
      expect(addresses(await findByName(alice, 'dan@'))).toEqual([api.dan.address])
      expect(addresses(await findByName(await alice.with(), 'дан'))).toEqual([])
      expect(addresses(await findByName(api.bob, 'дан'))).toEqual([])
    })

    it('does not find closed accounts', async () => {
      const { zoe } = await api.people('zoe')
      expect(addresses(await findByName(alice, 'zoe'))).toEqual([zoe.address])

      await closeUser(api.pod, 'zoe')

      expect(addresses(await findByName(alice, 'zoe'))).toEqual([])
      expect(addresses(await findByName(alice, zoe.address))).toEqual([])
    })

    it('finds a person by a changed name at once, and no longer by the former one', async () => {
      await api.eve.patch('/user', { name: 'Evelyn Zymurgy' })
      expect(addresses(await findByName(alice, 'zymurgy'))).toEqual([api.eve.address])

      await api.eve.patch('/user', { name: 'Eve' })

      expect(addresses(await findByName(alice, 'zymurgy'))).toEqual([])
    })
  })

  describe('by tag', () => {
    it('finds people with the tag in their profile', async () => {
      for (const tag of ['tea', '#Tea', 'TEA']) {
        expect(addresses(await find(alice, { tag }))).toEqual([api.bob.address, api.carol.address])
      }
      for (const tag of ['te', 'teas', '', '#', 'x'.repeat(1_000)])
        expect((await find(alice, { tag })).body).toEqual([])
    })
  })

  describe('with filters', () => {
    /** All whose name has "ba", or some of them. */
    const searchWithFilters = (...filters: string[]) =>
      alice.get(`/search/users?name_or_handle=ba&${filters.map((filter) => `filter[]=${filter}`).join('&')}`)
    const findWithFilters = async (...filters: string[]) => addresses(await searchWithFilters(...filters))

    it('are applied together', async () => {
      await share(api, alice, { guid: (await findByName(alice, 'quin@')).body[0].guid }, 'Work')
      const work = await aspectOf(api, alice, 'Work')
      const quin = 'quin@q.example'

      expect(await findWithFilters('contacts')).toEqual([api.bob.address, api.carol.address, quin])
      expect(await findWithFilters('contacts:sharing')).toEqual([api.bob.address, api.carol.address])
      expect(await findWithFilters('contacts:receiving')).toEqual([api.bob.address, quin])
      expect(await findWithFilters('contacts:receiving', 'contacts:sharing')).toEqual([api.bob.address])
      expect(await findWithFilters(`aspect:${api.friendsAspectId}`)).toEqual([api.bob.address])
      expect(await findWithFilters(`aspect:${api.friendsAspectId},${work}`)).toEqual([api.bob.address, quin])
      expect(await findWithFilters(`aspect:${work},${work}`, 'contacts:receiving')).toEqual([quin])
      expect(await findWithFilters(`aspect:${api.friendsAspectId}`, `aspect:${work}`)).toEqual([])
    })

    it('are applied to a search by tag', async () => {
      expect(addresses(await alice.get('/search/users?tag=tea&filter=contacts:receiving'))).toEqual([api.bob.address])
    })

    it('can be repeated, with brackets or without', async () => {
      const [receiving, sharing] = ['contacts:receiving', 'contacts%3Asharing']
      for (const query of [
        `filter=${receiving}&filter=${sharing}`,
        `filter[]=${receiving}&filter[]=${sharing}`,
        `filter%5B%5D=${receiving}&filter%5B%5D=${sharing}`,
        `filter=${receiving}&filter[]=${sharing}`,
      ]) {
        const answer = await alice.get(`/search/users?name_or_handle=ba&${query}`)
        expect(addresses(answer)).toEqual([api.bob.address])
      }
    })

    it('are refused if the name or the aspect is unknown', async () => {
      const theirs = await aspectOf(api, api.bob, 'Friends')
      for (const filter of [
        '',
        'contact',
        'contacts:',
        'Contacts',
        'aspect',
        'aspect:',
        'aspect:x',
        'aspect:1,',
        '__proto__',
      ]) {
        expectError(await searchWithFilters(filter), 422)
        expectError(await searchWithFilters('contacts', filter), 422)
      }
      for (const ids of ['0', theirs, `${api.friendsAspectId},${theirs}`, '9'.repeat(15), '9'.repeat(16), '-1']) {
        expectError(await searchWithFilters(`aspect:${ids}`), 422)
        expectError(await alice.get(`/search/users?name_or_handle=b&filter=aspect:${ids}`), 422)
      }
    })

    it('are limited in number', async () => {
      const aspects = Array.from(
        { length: 10 },
        (_, index) => `aspect:${api.friendsAspectId}${`,${api.friendsAspectId}`.repeat(index)}`,
      )

      expect((await searchWithFilters(...aspects, ...aspects)).status).toBe(200)
      expectError(await searchWithFilters(...aspects, 'contacts'), 422)
    })

    it('need the scope contacts:read, for every value', async () => {
      const client = await alice.with()
      for (const filter of ['contacts', 'nonsense', '']) {
        const answer = await client.get(`/search/users?name_or_handle=ba&filter[]=${filter}`)
        expectError(answer, 403)
        expect(answer.body.message).toContain('insufficient_scope')
        expect(answer.headers['www-authenticate']).toMatch(/error="insufficient_scope", scope="contacts:read"/)
        expectError(await client.get(`/search/users?filter=${filter}`), 403)
      }
      expect((await client.get('/search/users?name_or_handle=ba')).status).toBe(200)
    })
  })

  it('is paged', async () => {
    const all = addresses(await findByName(alice, 'ba'))
    expect(all).toHaveLength(3)
    for (const items of [1, 2, 3]) {
      const path = `/search/users?${queryOf({ name_or_handle: 'ba', per_page: items })}&filter[]=contacts`
      const people = await readAllPages(alice, path)
      expect(people.map(({ network_id }) => network_id)).toEqual(all)
    }
    const last = await find(alice, { name_or_handle: 'ba', per_page: 2, page: 2 })
    expect(last.links).toEqual({ previous: expect.stringContaining('name_or_handle=ba&per_page=2&page=1') })
    expect((await find(alice, { name_or_handle: 'ba', page: 2 })).body).toEqual([])
  })

  it('costs one statement, one more for aspects, and one for authentication', async () => {
    expect(await statementsDuring(() => findByName(alice, 'bob'))).toBe(2)
    expect(await statementsDuring(() => alice.get(`/search/users?tag=tea&filter=aspect:${api.friendsAspectId}`))).toBe(
      3,
    )
  })
})

describe.each(queueBackends)('searching for an unknown remote person, with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let fakePods: FakePods
  let workers: RunningWorkers | undefined
  let hosts = 0
  beforeAll(async () => {
    fakePods = await startFakePods()
    api = await startSampleApiPod({ queue: backend })
    ;({ alice } = api)
  })
  afterEach(async () => {
    await workers?.close()
    workers = undefined
  })
  afterAll(async () => {
    await api.close()
    await fakePods.close()
  })

  function startWorker(): void {
    const pod = { ...api.pod, remotePods: fakePods.remotePods() }
    workers = startTestWorkers(pod, { queues: ['fetch'], handlers: { fetch: openFetchHandlers() } })
  }
  function newUnknownPerson(): FakePerson {
    hosts += 1
    return fakePods.person(`remy@s${hosts}.example`)
  }

  it('discovers the person at their pod', async () => {
    startWorker()
    const { address, guid } = newUnknownPerson()

    const answer = await findByName(await alice.with(), ` acct:${address.toUpperCase()} `)

    expect(answer.body).toMatchObject([{ guid, network_id: address, name: 'remy Tester' }])
  })

  it('concurrent searches cause one lookup on the pod', async () => {
    startWorker()
    const { address } = newUnknownPerson()
    const [, host] = address.split('@')

    const answers = await Promise.all([alice, api.bob, alice, api.carol].map((who) => findByName(who, address)))

    expect(answers.map(addresses)).toEqual(Array(4).fill([address]))
    await untilIdle(api.pod, 15_000, ['fetch'])
    // Jobs of the person of another test may still run.
    const requests = fakePods.requests.filter((request) => request.startsWith(`${host}/`))
    expect(requests.filter((request) => !request.includes('/stream'))).toHaveLength(2)
    expect(requests.filter((request) => request.includes('/stream'))).toHaveLength(1)
  })

  it('an unknown address finds no person, and leaves no dead letter', async () => {
    startWorker()

    expect(await findByName(alice, 'ghost@nowhere.example')).toMatchObject({ status: 200, body: [] })

    await untilIdle(api.pod, 15_000, ['fetch'])
    expect(await api.pod.jobs.failed('fetch', 0, 10)).toEqual([])
  })

  it('the number of pending lookups is bounded, and known people are still found', async () => {
    await untilIdle(api.pod, 15_000, ['fetch'])
    const answers = await Promise.all(Array.from({ length: 10 }, () => findByName(alice, newUnknownPerson().address)))

    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
    expect((await api.pod.jobs.counts('fetch')).waiting).toBe(3)
    expect((await findByName(alice, api.bob.address)).body).toHaveLength(1)

    startWorker()
    await untilIdle(api.pod, 15_000, ['fetch'])
  })

  it('stops waiting after a time limit, and finds the person at the next search', async () => {
    const { address } = newUnknownPerson()
    expect((await findByName(alice, address)).body).toEqual([])

    startWorker()
    await untilIdle(api.pod, 15_000, ['fetch'])

    expect(addresses(await findByName(alice, address))).toEqual([address])
  })

  it('no other query causes a lookup', async () => {
    startWorker()
    await untilIdle(api.pod, 15_000, ['fetch'])
    const before = fakePods.requests.length
    const { address } = newUnknownPerson()
    await addRemotePerson(api.pod, 'known@k.example')
    for (const text of [
      'remy',
      'remy@',
      '@s1.example',
      'nobody@pod.example',
      'known@k.example',
      api.bob.address,
      'a b@c.d',
    ]) {
      await findByName(alice, text)
    }
    await find(alice, { name_or_handle: address, page: 2 })
    await find(alice, { name_or_handle: address, filter: 'contacts' })
    await find(alice, { tag: address })

    await untilIdle(api.pod, 15_000, ['fetch'])
    // The posts of a known person are fetched once.
    expect(fakePods.requests.slice(before).filter((request) => !request.startsWith('k.example'))).toEqual([])
  })
})

it('people are found while the queue is unavailable', async () => {
  const change: NonNullable<PodOptions['change']> = (pod) => ({
    ...pod,
    jobs: { ...pod.jobs, add: () => Promise.reject(new QueueUnavailable('away')) },
  })
  await using api = await startSampleApiPod({ change })

  expect(await findByName(api.alice, 'unknown@s.example')).toMatchObject({ status: 200, body: [] })
  expect(addresses(await findByName(api.alice, 'bob@pod.example'))).toEqual([api.bob.address])
})
