import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Like } from '../../../src/persistence/models/like.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import {
  type ApiClient,
  type ApiPerson,
  type ApiResponse,
  expectError,
  readAllPages,
} from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  /** A public post of Bob's that nothing has happened to, and a comment of Carol's under it. */
  let post: string
  let comment: string
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Good evening', public: true })
    comment = (await api.carol.post(`/posts/${post}/comments`, { body: 'So it is' })).body.guid
  })

  const ofPost = (guid = post) => `/posts/${guid}/likes`
  const ofComment = (guid = comment, under = post) => `/posts/${under}/comments/${guid}/likes`
  const read = async (who: ApiClient = alice) => (await who.get(`/posts/${post}`)).body
  const readComment = async (who: ApiClient = alice) => (await who.get(`/posts/${post}/comments`)).body[0]
  const likers = async (path: string, who: ApiClient = alice) =>
    (await who.get(path)).body.map(({ author }: ApiResponse['body']) => author.guid)

  it('a like of a post has one effect, raises the counter, and is marked as own for the liker', async () => {
    const answer = await alice.post(ofPost())

    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(await read()).toMatchObject({
      interaction_counters: { likes: 1 },
      own_interaction_state: { liked: true, subscribed: true },
    })
    expect((await read(bob)).own_interaction_state.liked).toBe(false)
    expectError(await alice.post(ofPost()), 409)
    expect((await read()).interaction_counters.likes).toBe(1)
  })

  it('can be retracted once', async () => {
    await alice.post(ofPost())
    await bob.post(ofPost())

    const answer = await alice.delete(ofPost())

    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(await read()).toMatchObject({
      interaction_counters: { likes: 1 },
      own_interaction_state: { liked: false, subscribed: false },
    })
    expectError(await alice.delete(ofPost()), 410)
    expect(await likers(ofPost())).toEqual([bob.guid])
    expect((await alice.post(ofPost())).status).toBe(204)
  })

  it('a like of a comment has the same rules', async () => {
    expect((await alice.post(ofComment())).status).toBe(204)

    expectError(await alice.post(ofComment()), 409)
    expect(await readComment()).toMatchObject({ interactions: { liked: true, likes_count: 1 } })
    expect(await read()).toMatchObject({
      interaction_counters: { likes: 0 },
      own_interaction_state: { liked: false, subscribed: true },
    })
    expect(await likers(ofComment())).toEqual([alice.guid])
    expect(await likers(ofPost())).toEqual([])

    expect((await alice.delete(ofComment())).status).toBe(204)
    expectError(await alice.delete(ofComment()), 410)
    expect(await readComment()).toMatchObject({ interactions: { liked: false, likes_count: 0 } })
    expect((await read()).own_interaction_state.subscribed).toBe(false)
  })

  it.each([
    ['a post', () => ofPost()],
    ['a comment', () => ofComment()],
  ])('likes of %s are listed with one’s own first', async (_what, path) => {
    for (const who of [bob, api.carol, alice]) expect((await who.post(path())).status).toBe(204)

    const { body } = await alice.get(path())

    expect(body).toEqual(
      ['alice', 'bob', 'carol'].map((name) => ({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        author: {
          guid: expect.any(String),
          network_id: `${name}@pod.example`,
          diaspora_id: `${name}@pod.example`,
          name: `${name}@pod.example`,
          avatar: expect.any(String),
        },
      })),
    )
    expect(await likers(path(), api.carol)).toEqual([api.carol.guid, bob.guid, alice.guid])
    expect(await likers(path(), api.dan)).toEqual([bob.guid, api.carol.guid, alice.guid])
  })

  it('answer 404 for unknown posts and comments', async () => {
    const other = (await bob.post(`/posts/${api.alicePost}/comments`, { body: 'Elsewhere' })).body.guid
    const missing = [ofPost(newGuid()), ofPost('x'), ofPost(api.bobWorkPost), ofComment(newGuid()), ofComment('x')]
    missing.push(ofComment(other), ofComment(comment, newGuid()), ofComment(comment, api.alicePost))
    for (const path of missing) {
      expectError(await alice.get(path), 404)
      expectError(await alice.get(`${path}?page=x`), 404)
      expectError(await alice.post(path), 404)
      expectError(await alice.delete(path), 404)
    }
  })

  it('likes of private content need private:read', async () => {
    const under = (await bob.post(`/posts/${api.bobFriendsPost}/comments`, { body: 'For you' })).body.guid
    const client = await alice.with('interactions')
    for (const path of [ofPost(api.bobFriendsPost), ofComment(under, api.bobFriendsPost)]) {
      expectError(await client.get(path), 404)
      expectError(await client.post(path), 404)
      expectError(await client.delete(path), 404)
      const reader = await alice.with('interactions', 'private:read')
      expect((await reader.post(path)).status).toBe(204)
      expect(await likers(path, await alice.with('private:read'))).toEqual([alice.guid])
      expect((await reader.delete(path)).status).toBe(204)
    }
  })

  it('need the scope interactions for changes, and the scope of the post for reads', async () => {
    const reader = await alice.with('private:read', 'public:modify')
    for (const path of [ofPost(), ofComment()]) {
      expect((await reader.get(path)).status).toBe(200)
      expectError(await reader.post(path), 403)
      expectError(await reader.delete(path), 403)
    }
  })

  it('take a token from a form', async () => {
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const send = (body: string) => api.call({ method: 'POST', path: ofPost(), headers, body })

    expectError(await send('a=b'), 401)
    expect((await send(`access_token=${alice.token}`)).status).toBe(204)
    expect((await read()).own_interaction_state.liked).toBe(true)
  })

  it('a like of one’s own post is allowed and notifies no person', async () => {
    await bob.post(ofPost())
    await api.carol.post(ofComment())

    expect((await read(bob)).own_interaction_state).toMatchObject({ liked: true, subscribed: false })
    for (const who of [bob, api.carol]) {
      const news: ApiResponse['body'][] = (await who.get('/notifications')).body
      expect(news.filter(({ type, target }) => type.startsWith('liked') && target.guid === post)).toEqual([])
    }
  })

  it('a like notifies the author; the notification stays when the like is retracted', async () => {
    await alice.post(ofPost())
    await alice.post(ofComment())
    await alice.delete(ofPost())
    await alice.delete(ofComment())

    const listNotifications = async (who: ApiClient) =>
      (await who.get('/notifications')).body
        .filter(({ target }: ApiResponse['body']) => target?.guid === post)
        .map(({ type }: ApiResponse['body']) => type)
    expect(await listNotifications(bob)).toEqual(['liked', 'commented_on_post'])
    expect(await listNotifications(api.carol)).toEqual(['liked_comment'])
  })

  it('a like by a person whom the author blocks is rejected and leaves no trace', async () => {
    const { fred, gina } = await api.people('fred', 'gina')
    const theirs = await publish(api, fred, { text: 'Mine', public: true })
    const said = (await alice.post(`/posts/${theirs}/comments`, { body: 'Hello' })).body.guid
    await gina.post(ofPost(theirs))
    await fred.post(`/users/${gina.guid}/block`)
    expectError(await gina.post(ofPost(theirs)), 422)
    expectError(await gina.post(ofComment(said, theirs)), 422)

    expect(await likers(ofPost(theirs))).toEqual([gina.guid])
    expect(await likers(ofComment(said, theirs))).toEqual([])
    expect((await gina.delete(ofPost(theirs))).status).toBe(204)
    expect((await gina.get(`/posts/${theirs}`)).body.own_interaction_state).toMatchObject({ subscribed: false })
  })

  it('a like subscribes again to a muted post', async () => {
    await alice.post(`/posts/${post}/subscribe`)
    await alice.post(`/posts/${post}/mute`)

    await alice.post(ofComment())

    expect((await read()).own_interaction_state.subscribed).toBe(true)
  })

  describe('in pages', () => {
    const MANY = 40
    let unknownPeople: readonly { readonly id: number }[]
    beforeAll(async () => {
      const names = Array.from({ length: MANY + 1 }, (_, number) => `q${number}@q.example`)
      unknownPeople = await Promise.all(names.map((address) => addRemotePerson(api.pod, address)))
    })
    beforeEach(async () => {
      const [postId, commentId] = [await idOf('posts', post), await idOf('comments', comment)]
      const [{ id: unmoved } = { id: 0 }, ...moved] = unknownPeople
      const like = (authorId: number) =>
        Like.query(api.pod.db).insert([
          { guid: newGuid(), authorId, postId },
          { guid: newGuid(), authorId, commentId },
        ])
      for (const { id } of moved.slice(2)) await like(id)
      for (const path of [ofPost(), ofComment()]) await alice.post(path)
      for (const { id } of moved.slice(0, 2)) await like(id)
      await Like.query(api.pod.db).insert({ guid: newGuid(), authorId: unmoved, postId, positive: false })
    })
    const idOf = async (table: string, guid: string): Promise<number> =>
      (await api.pod.db(table).where({ guid }).first('id')).id

    it('contain each like once, the own one first, and no dislike', async () => {
      for (const path of [ofPost(), ofComment()]) {
        const all = await readAllPages(alice, `${path}?per_page=7`)
        const ids = await Like.query(api.pod.db)
          .whereIn(
            'guid',
            all.map(({ guid }) => guid),
          )
          .orderBy('id')

        expect(all).toHaveLength(MANY + 1)
        expect(new Set(all.map(({ guid }) => guid)).size).toBe(MANY + 1)
        expect(all[0].author.guid).toBe(alice.guid)
        const others = ids.filter(({ authorId }) => authorId !== alice.viewer.personId)
        expect(all.slice(1).map(({ guid }) => guid)).toEqual(others.map(({ guid }) => guid))
        expect(await readAllPages(api.dan, `${path}?per_page=100`)).toHaveLength(MANY + 1)
      }
    })

    it('link to the next and the previous page, and are empty after the end', async () => {
      const first = await alice.get(ofPost())
      expect([first.body.length, first.body[0].author.guid]).toEqual([15, alice.guid])
      expect(first.links).toEqual({ next: `https://pod.example/api/v1${ofPost()}?page=2` })
      const last = await alice.get(`${ofPost()}?page=3`)
      expect(last.body).toHaveLength(MANY + 1 - 30)
      expect(last.links).toEqual({ previous: `https://pod.example/api/v1${ofPost()}?page=2` })
      expect((await alice.get(`${ofPost()}?page=1000000000000`)).body).toEqual([])
      expect((await alice.get(`${ofPost()}?page=0&per_page=0`)).body).toHaveLength(1)
      for (const query of ['page=x', 'page=', 'page=1.5', 'per_page=x', 'page=1&page=2']) {
        expectError(await alice.get(`${ofPost()}?${query}`), 422)
      }
    })

    it('a page costs three statements: authentication, the target, the likes', async () => {
      for (const path of [ofPost(), ofComment()]) expect(await statementsDuring(() => alice.get(path))).toBe(3)
    })
  })
})
