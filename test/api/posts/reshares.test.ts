import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
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
  /** A public post of Bob's that nothing has happened to. */
  let post: string
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Good evening', public: true })
  })

  const reshare = (guid = post, who: ApiClient = alice) => who.post(`/posts/${guid}/reshares`)
  const read = async (guid = post, who: ApiClient = alice) => (await who.get(`/posts/${guid}`)).body
  const list = (guid = post, who: ApiClient = alice, query = '') => who.get(`/posts/${guid}/reshares${query}`)
  const resharers = async (guid = post, who: ApiClient = alice) =>
    (await list(guid, who)).body.map(({ author }: ApiResponse['body']) => author.guid)

  it('creates a post with the complete root', async () => {
    const poll = { question: 'Tea?', answers: ['y', 'n'] }
    const location = { address: 'Here', lat: '1', lng: '2' }
    const root = await publish(api, bob, { text: `## Tea\n@{${alice.address}} #nsfw`, public: true, poll, location })

    const answer = await reshare(root)

    expect(answer.status).toBe(200)
    const original = await read(root)
    const { title, body, nsfw, mentioned_people, photos } = original
    expect(answer.body).toEqual({
      title,
      body,
      nsfw,
      mentioned_people,
      photos,
      location: { address: 'Here', lat: 1, lng: 2 },
      poll: original.poll,
      guid: expect.stringMatching(/^[0-9a-f]{32}$/),
      created_at: expect.any(String),
      post_type: 'Reshare',
      public: true,
      author: expect.objectContaining({ guid: alice.guid }),
      interaction_counters: { comments: 0, likes: 0, reshares: 0 },
      own_interaction_state: { liked: false, reshated: false, reshared: false, subscribed: false, reported: false },
      root: original,
    })
    expect(original).toMatchObject({
      guid: root,
      interaction_counters: { reshares: 1 },
      own_interaction_state: { reshated: true, reshared: true, subscribed: true },
    })
    expect(await read(answer.body.guid)).toEqual(answer.body)
    expect(answer.text).toContain('"lat":1.0,"lng":2.0')
  })

  it('a second one is refused', async () => {
    await reshare()

    expectError(await reshare(), 409)
    expect((await read()).interaction_counters.reshares).toBe(1)
  })

  it('a reshare of one’s own post, a private post or an invisible post is rejected', async () => {
    expectError(await reshare(api.alicePost), 422)
    expectError(await reshare(api.bobFriendsPost), 422)
    expectError(await reshare(api.bobFriendsPost, await alice.with('public:modify')), 404)
    for (const guid of [api.bobWorkPost, newGuid(), 'x']) expectError(await reshare(guid), 404)
  })

  it('a reshare of a reshare shows the original, and is refused if that is an own post, reshared already or deleted', async () => {
    const first = (await reshare(post, api.carol)).body.guid

    const second = (await reshare(first)).body

    expect(second.root).toMatchObject({ guid: post, post_type: 'StatusMessage' })
    expect((await read()).interaction_counters.reshares).toBe(2)
    expect((await read(first)).interaction_counters.reshares).toBe(0)
    for (const guid of [post, first]) expectError(await reshare(guid), 409)
    expectError(await reshare(first, bob), 422)
    await bob.delete(`/posts/${post}`)
    expectError(await reshare(first, api.dan), 422)
  })

  it('stays without a root when the original is deleted', async () => {
    const { guid } = (await reshare()).body

    expect((await bob.delete(`/posts/${post}`)).status).toBe(204)

    const left = await read(guid)
    expect(left).toMatchObject({ post_type: 'Reshare', body: '', title: 'A post from alice@pod.example' })
    expect(left).not.toHaveProperty('root')
  })

  it('can be deleted and created again', async () => {
    const { guid } = (await reshare()).body

    expect((await alice.delete(`/posts/${guid}`)).status).toBe(204)

    expect(await read()).toMatchObject({
      interaction_counters: { reshares: 0 },
      own_interaction_state: { reshared: false, subscribed: false },
    })
    expect((await reshare()).status).toBe(200)
  })

  it('notifies the author, who is notified of comments on the reshare', async () => {
    const { guid } = (await reshare()).body
    const [news] = (await bob.get('/notifications')).body
    expect(news).toMatchObject({ type: 'reshared', target: { guid: post }, event_creators: [{ guid: alice.guid }] })
    expect((await read(guid, bob)).own_interaction_state.subscribed).toBe(true)

    await api.carol.post(`/posts/${guid}/comments`, { body: 'Well said' })

    const [more] = (await bob.get('/notifications')).body
    expect(more).toMatchObject({ type: 'also_commented', target: { guid } })
  })

  it('needs the scope public:modify', async () => {
    const reader = await alice.with('interactions', 'private:read', 'private:modify')

    expectError(await reshare(post, reader), 403)
    expect((await list(post, reader)).status).toBe(200)
    expect((await reshare(post, await alice.with('public:modify'))).status).toBe(200)
  })

  it('is listed, the own one first', async () => {
    const guids: string[] = []
    for (const who of [api.carol, alice, api.dan]) guids.push((await reshare(post, who)).body.guid)

    const { body } = await list()

    expect(body.map(({ guid }: ApiResponse['body']) => guid)).toEqual([guids[1], guids[0], guids[2]])
    const own = await read(guids[1])
    expect(body[0]).toEqual({ guid: own.guid, created_at: own.created_at, author: own.author })
    expect(await resharers(post, bob)).toEqual([api.carol.guid, alice.guid, api.dan.guid])
  })

  it('is listed for visible posts, and never for private posts', async () => {
    const { id: rootId } = await Post.query(api.pod.db).findOne({ guid: api.bobFriendsPost }).throwIfNotFound()
    await addPost(api.pod, await addRemotePerson(api.pod, 'remy@r.example'), { type: 'Reshare', text: '', rootId })
    expect((await list(api.bobFriendsPost)).body).toEqual([])
    for (const guid of [api.bobWorkPost, newGuid(), 'x']) {
      expectError(await list(guid), 404)
      expectError(await list(guid, alice, '?page=x'), 404)
    }
    expectError(await list(api.bobFriendsPost, await alice.with()), 404)
    expectError(await list(post, alice, '?page=x'), 422)
  })

  it('is listed in pages, with three statements each', async () => {
    const rootId = (await Post.query(api.pod.db).findOne({ guid: post }).throwIfNotFound()).id
    const all: string[] = []
    for (let number = 0; number < 20; number += 1) {
      const author = await addRemotePerson(api.pod, `q${number}@q.example`)
      all.push((await addPost(api.pod, author, { type: 'Reshare', text: '', rootId })).guid)
    }
    const own = (await reshare()).body.guid

    const listed = await readAllPages(alice, `/posts/${post}/reshares?per_page=7`)

    expect(listed.map(({ guid }) => guid)).toEqual([own, ...all])
    const first = await list()
    expect([first.body.length, Object.keys(first.links)]).toEqual([15, ['next']])
    expect(Object.keys((await list(post, alice, '?page=2')).links)).toEqual(['previous'])
    expect(await statementsDuring(() => list())).toBe(3)
  })
})
