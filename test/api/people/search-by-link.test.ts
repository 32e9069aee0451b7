import type { ServerResponse } from 'node:http'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { SEARCH_LIMITS } from '../../../src/domain/people/limits.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { postBy } from '../../support/federation/entities.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('a search by link, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: InboundPod
  let ann: TestPerson
  let ben: TestPerson
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores })
    ;({ ann, ben } = await pod.people('ann', 'ben'))
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })
  afterEach(() => pod.waitUntilIdle())

  const search = async (what: 'users' | 'posts', query: string, who: Pick<TestPerson, 'get'> = ann) => {
    const answer = await who.get(`/api/v1/search/${what}?query=${encodeURIComponent(query)}`)
    const body = answer.json()
    return [answer.statusCode, Array.isArray(body) ? body.map(({ guid }: { guid: string }) => guid) : body.code]
  }
  /** Another pod may answer later than the search ends; then it is found by the next one. */
  async function searchAfterLookup(what: 'users' | 'posts', query: string) {
    await search(what, query)
    await pod.waitUntilIdle()
    return search(what, query)
  }
  async function write(isPublic: boolean) {
    const viewer = await viewerOf(pod, ann)
    const { id } = await pod.db('aspects').where({ userId: viewer.userId, name: 'Friends' }).first('id')
    return (await publishPost(pod, viewer, { text: 'Hi', public: isPublic, aspectIds: isPublic ? [] : [id] })).guid
  }

  it('finds people by page, diaspora link and address, also unknown remote ones', async () => {
    const { guid } = ann.account
    for (const text of [
      `https://pod.example/people/${guid}`,
      'https://pod.example/u/ann',
      'diaspora://ann@pod.example',
      'ann@pod.example',
    ]) {
      expect([text, await search('users', text, ben)]).toEqual([text, [200, [guid]]])
    }
    const byPage = fakePods.person('zoe@z1.example')
    const byName = fakePods.person('zoe@z2.example')
    const byLink = fakePods.person('zoe@z3.example')
    expect(await searchAfterLookup('users', `https://z1.example/people/${byPage.guid}`)).toEqual([200, [byPage.guid]])
    expect(await searchAfterLookup('users', 'https://z2.example/u/zoe')).toEqual([200, [byName.guid]])
    expect(await searchAfterLookup('users', `web+diaspora://${byLink.address}`)).toEqual([200, [byLink.guid]])
  })

  it('finds a stored post for people who may see it', async () => {
    const [open, hidden] = [await write(true), await write(false)]
    for (const text of [
      `https://pod.example/posts/${open}`,
      `https://elsewhere.example/p/${open}`,
      `diaspora://ann@pod.example/post/${open}`,
    ]) {
      expect([text, await search('posts', text, ben)]).toEqual([text, [200, [open]]])
    }
    expect(await search('posts', `https://pod.example/posts/${hidden}`)).toEqual([200, [hidden]])
    expect(await search('posts', `https://pod.example/posts/${hidden}`, await ann.with())).toEqual([200, []])
    expect(await search('posts', `https://pod.example/posts/${hidden}`, ben)).toEqual([200, []])
    expect(await search('posts', `diaspora://ben@pod.example/post/${open}`)).toEqual([200, []])
  })

  it('fetches a public post from another pod, once', async () => {
    const yuri = fakePods.person('yuri@y.example')
    const [byPage, byLink] = [postBy(yuri, { text: 'Hello' }), postBy(yuri, { text: 'Again' })]
    for (const post of [byPage, byLink]) fakePods.serve(yuri, post, 'post')

    expect(await searchAfterLookup('posts', `https://y.example/posts/${byPage.guid}`)).toEqual([200, [byPage.guid]])
    expect(await searchAfterLookup('posts', `diaspora://${yuri.address}/post/${byLink.guid}`)).toEqual([
      200,
      [byLink.guid],
    ])
    const before = fakePods.requests.length
    expect(await search('posts', `https://y.example/posts/${byPage.guid}`, ben)).toEqual([200, [byPage.guid]])
    expect(fakePods.requests.slice(before)).toEqual([])
  })

  it('rejects links to no post, without a request to any pod', async () => {
    const before = fakePods.requests.length
    for (const text of ['', 'cats', 'ann@pod.example', 'https://z.example/', `https://z.example/people/${newGuid()}`]) {
      expect([text, await search('posts', text)]).toEqual([text, [422, 422]])
    }
    expect((await ann.get(`/api/v1/search/posts?tag=a&query=https://z.example/posts/${newGuid()}`)).statusCode).toBe(
      422,
    )
    expect(await search('posts', `https://pod.example/posts/${newGuid()}`)).toEqual([200, []])
    expect(await search('users', 'https://z.example/')).toEqual([200, []])
    expect(await search('users', `https://pod.example/people/${newGuid()}`)).toEqual([200, []])
    expect(fakePods.requests.slice(before)).toEqual([])
  })

  it('limits the concurrent lookups of one user', async () => {
    const { maxConcurrentRemoteLookupsOfUser: limit } = SEARCH_LIMITS
    const held: ServerResponse[] = []
    let answered = 0
    const searches = Array.from({ length: 10 }, async (_, each) => {
      const [host, guid] = [`slow${each}.example`, newGuid()]
      fakePods.script(`${host}/fetch/post/${guid}`, (_request, response) => void held.push(response))
      const answer = await search('posts', `https://${host}/posts/${guid}`)
      answered += 1
      return answer
    })

    await expect.poll(() => [held.length, answered]).toEqual([limit, 10 - limit])
    for (const response of held) response.writeHead(404).end()
    expect(await Promise.all(searches)).toEqual(Array(10).fill([200, []]))
    expect(held).toHaveLength(limit)
  })
})
