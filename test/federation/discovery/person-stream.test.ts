import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { fetchPersonStream } from '../../../src/federation/discovery/fetch-person-stream.js'
import { PERSON_STREAM_LIMITS } from '../../../src/protocol/discovery/limits.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { postBy, reshareBy } from '../../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { hostOf } from '../../support/people/remote-people.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('the stream of a person of another pod, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: InboundPod
  let hosts = 0
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores })
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })
  afterEach(() => pod.waitUntilIdle())

  function newPerson(): FakePerson {
    hosts += 1
    return fakePods.person(`quin@q${hosts}.example`)
  }

  const pathOf = (person: FakePerson) => `${hostOf(person)}/people/${person.guid}/stream`
  const requestsFor = (person: FakePerson) => fakePods.requests.filter((each) => each.startsWith(pathOf(person)))

  /** As diaspora* shows it. */
  const itemOf = ({ guid, public: isPublic, created_at: createdAt }: StatusMessageEntity, author: FakePerson) => ({
    id: 1,
    guid,
    public: isPublic,
    created_at: createdAt,
    author: { id: 2, guid: author.guid, name: 'quin', diaspora_id: author.address },
  })

  function serveStream(person: FakePerson, items: unknown): void {
    fakePods.script(pathOf(person), (_request, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(items)),
    )
  }

  function publish(author: FakePerson, count: number): readonly StatusMessageEntity[] {
    const posts = Array.from({ length: count }, () => postBy(author))
    for (const post of posts) fakePods.serve(author, post)
    return posts
  }

  async function search(person: FakePerson): Promise<readonly { guid: string }[]> {
    const { ann } = await pod.people('ann')
    const { statusCode, body } = await pod.app.inject({
      url: `/api/v1/search/users?name_or_handle=${person.address}`,
      headers: { authorization: `Bearer ${ann.token}` },
    })
    expect(statusCode).toBe(200)
    await pod.waitUntilIdle()
    return JSON.parse(body)
  }

  const storedOf = ({ address }: FakePerson) =>
    pod.db('posts').join('people', 'people.id', 'authorId').where({ address }).orderBy('posts.id').pluck('posts.guid')

  it('is fetched once after the person was found by a search, the oldest post first', async () => {
    const quin = newPerson()
    const posts = publish(quin, 3)
    const items = posts.map((post) => itemOf(post, quin))
    serveStream(quin, items)

    expect(await search(quin)).toMatchObject([{ guid: quin.guid }])
    expect(await storedOf(quin)).toEqual(posts.map(({ guid }) => guid).reverse())
    await search(quin)
    expect(requestsFor(quin)).toEqual([pathOf(quin)])
  })

  it('is fetched when a person is searched who is known by a message', async () => {
    const quin = newPerson()
    await pod.addRemotePerson(quin)
    const [post] = publish(quin, 1)
    serveStream(quin, post && [itemOf(post, quin)])
    await search(quin)

    expect(await storedOf(quin)).toEqual([post?.guid])
  })

  it('is not fetched for a lookup without an account', async () => {
    const quin = newPerson()
    const { statusCode } = await pod.app.inject({ url: `/people?q=${quin.address}`, remoteAddress: '203.0.113.9' })
    await pod.waitUntilIdle()

    expect(statusCode).toBe(302)
    expect(requestsFor(quin)).toEqual([])
  })

  it('stores only unknown public posts of the person, up to its limit', async () => {
    const quin = newPerson()
    const remy = newPerson()
    const [known, reshared, ...posts] = publish(quin, PERSON_STREAM_LIMITS.posts + 5)
    const [foreign] = publish(remy, 1)
    if (known === undefined || reshared === undefined || foreign === undefined) throw new Error('There is no post.')
    const hidden = postBy(quin, { public: false })
    await pod.addRemotePerson(quin)
    await pod.postPublic(known, quin)
    await pod.waitUntilIdle()
    const reshare = reshareBy(quin, foreign)
    fakePods.serve(quin, reshare)
    const items = [known, hidden, ...posts].map((post) => itemOf(post, quin))
    const own = { ...itemOf(reshared, quin), guid: reshare.guid }
    serveStream(quin, [own, itemOf(foreign, remy), { guid: 7 }, null, { ...own, guid: 'x' }, ...items])
    await search(quin)

    const expected = [
      known.guid,
      ...posts.slice(0, PERSON_STREAM_LIMITS.posts - 2).map(({ guid }) => guid),
      reshare.guid,
    ]
    expect((await storedOf(quin)).sort()).toEqual(expected.sort())
    expect(fakePods.requests.filter((each) => each.includes(hidden.guid) || each.includes(known.guid))).toEqual([])
    expect(await storedOf(remy)).toEqual([foreign.guid])
  })

  it('leaves out posts that cannot be fetched, and stores the others', async () => {
    const quin = newPerson()
    const [good] = publish(quin, 1)
    if (good === undefined) throw new Error('There is no post.')
    serveStream(quin, [itemOf(postBy(quin), quin), itemOf(good, quin)])
    await search(quin)

    expect(await storedOf(quin)).toEqual([good.guid])
  })

  it.each([
    ['is a page', '<html>'],
    ['is not a list', '{"posts": []}'],
    ['is too large', `[${' '.repeat(PERSON_STREAM_LIMITS.bytes)}]`],
  ])('that %s stores nothing, and the person is found', async (_what, body) => {
    const quin = newPerson()
    fakePods.script(pathOf(quin), (_request, response) => response.end(body))

    expect(await search(quin)).toMatchObject([{ guid: quin.guid }])
    await search(quin)
    expect(requestsFor(quin)).toHaveLength(1)
    expect(await storedOf(quin)).toEqual([])
  })

  it('stores older posts on demand, before the oldest known one', async () => {
    const quin = newPerson()
    const [newest] = publish(quin, 1)
    const older = postBy(quin, { created_at: new Date('2023-05-06T07:08:09Z') })
    fakePods.serve(quin, older)
    if (newest === undefined) throw new Error('There is no post.')
    fakePods.script(pathOf(quin), (_request, response, url) => {
      const before = Number(url.searchParams.get('max_time') ?? Number.POSITIVE_INFINITY) * 1_000
      const shown = [newest, older].filter(({ created_at: at }) => at.getTime() < before)
      // A page of one post; the oldest one is shown when nothing newer is wanted.
      response.end(
        JSON.stringify(
          shown
            .slice(before === Number.POSITIVE_INFINITY ? 0 : -1)
            .slice(0, 1)
            .map((post) => itemOf(post, quin)),
        ),
      )
    })
    await search(quin)
    expect(await storedOf(quin)).toEqual([newest.guid])

    expect(await fetchPersonStream(pod, quin.address, { older: true })).toBe(1)
    expect(requestsFor(quin)).toEqual([
      pathOf(quin),
      `${pathOf(quin)}?max_time=${Date.parse('2024-05-06T07:08:10Z') / 1_000}`,
    ])
    expect(await storedOf(quin)).toEqual([newest.guid, older.guid])
  })

  it('is that of the guid on the pod of the person, where another person has it here', async () => {
    const quin = newPerson()
    const thief = fakePods.person(`thief@q${hosts}.example`, { guid: newGuid() })
    fakePods.script(`q${hosts}.example/hcard/users/${thief.guid}`, (_request, response) =>
      response.end(fakePods.hcard({ ...thief, guid: quin.guid })),
    )
    await search(thief)
    const [post] = publish(quin, 1)
    serveStream(quin, post && [itemOf(post, quin)])
    await search(quin)

    expect(await storedOf(quin)).toEqual([post?.guid])
  })
})
