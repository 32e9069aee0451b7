import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { setPostHidden, subscribeToPost } from '../../../src/domain/interactions/post-interactions.js'
import { voteInPoll } from '../../../src/domain/interactions/votes.js'
import { createReport } from '../../../src/domain/moderation/reports.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import type { Photo } from '../../../src/persistence/models/photo.js'
import { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

const postsOf = ({ guid }: Pick<ApiPerson, 'guid'>, query = '') => `/users/${guid}/posts${query}`
const guidsOf = (posts: readonly { guid: string }[]) => posts.map(({ guid }) => guid)
const idOf = async (guid: string) => (await Post.query(api.pod.db).findOne({ guid }).throwIfNotFound()).id

/** A person of another pod with nothing written, so that a test sees only its own posts. */
let remotePeople = 0
async function newRemotePerson() {
  remotePeople += 1
  return addRemotePerson(api.pod, `quin${remotePeople}@q.example`)
}

describe('GET /users/:person_guid/posts', () => {
  it('lists the posts visible to the viewer, the newest first', async () => {
    const answer = await api.alice.get(postsOf(api.bob))

    expect(answer.status).toBe(200)
    expect(guidsOf(answer.body)).toEqual([api.bobPoll, api.bobFriendsPost, api.bobPost])
  })

  it('lists no private posts for a token without private:read', async () => {
    expect(guidsOf((await (await api.alice.with()).get(postsOf(api.bob))).body)).toEqual([api.bobPoll, api.bobPost])
  })

  it('lists only the own public posts for such a token, and all own posts otherwise', async () => {
    const mine = await publish(api, api.alice, {
      text: 'for friends',
      public: false,
      aspectIds: [await aspectOf(api, api.alice, 'Family')],
    })

    expect(guidsOf((await (await api.alice.with()).get(postsOf(api.alice))).body)).toEqual([api.alicePost])
    expect(guidsOf((await api.alice.get(postsOf(api.alice))).body)).toEqual([mine, api.alicePost])
    expect(guidsOf((await api.bob.get(postsOf(api.alice))).body)).toEqual([api.alicePost])
  })

  it('an unknown person is a 404 before any other error', async () => {
    for (const query of ['', '?before=soon', '?per_page=x']) {
      expectError(await api.alice.get(`/users/${newGuid()}/posts${query}`), 404)
    }
  })

  it('lists hidden posts, and posts by a blocked person', async () => {
    const { gus } = await api.people('gus')
    await setPostHidden(api.pod, gus.viewer, api.bobPost, true)
    await gus.post(`/users/${api.bob.guid}/block`)

    expect(guidsOf((await gus.get(postsOf(api.bob))).body)).toEqual([api.bobPoll, api.bobPost])
  })
})

describe('a post', () => {
  it('has exactly the documented fields', async () => {
    const { hal } = await api.people('hal')
    const guid = await publish(api, hal, { text: `## Lunch?\n@{${api.bob.address}} what do you say?`, public: true })
    await api.bob.editProfile({ firstName: 'Bob' })
    await createComment(api.pod, api.alice.viewer, { postGuid: guid, text: 'Fine.' })

    const [post] = (await api.bob.get(postsOf(hal))).body

    expect(post).toEqual({
      guid,
      created_at: expect.any(String),
      public: true,
      post_type: 'StatusMessage',
      title: 'Lunch?',
      body: `## Lunch?\n@{${api.bob.address}} what do you say?`,
      nsfw: false,
      author: {
        guid: hal.guid,
        network_id: 'hal@pod.example',
        diaspora_id: 'hal@pod.example',
        name: 'hal@pod.example',
        avatar: 'https://pod.example/images/user/default.png',
      },
      interaction_counters: { comments: 1, likes: 0, reshares: 0 },
      own_interaction_state: { liked: false, reshated: false, reshared: false, subscribed: false, reported: false },
      mentioned_people: [expect.objectContaining({ guid: api.bob.guid, name: 'Bob' })],
      photos: [],
    })
  })

  it('shows the interactions of the viewer, and of no other person', async () => {
    const { ida } = await api.people('ida')
    const { viewer } = ida
    const before = (await ida.get(postsOf(api.carol))).body[0]
    const answerId: number = before.poll.poll_answers[0].id
    await ida.post(`/posts/${api.carolPoll}/likes`)
    await ida.post(`/posts/${api.carolPoll}/reshares`)
    await createReport(api.pod, viewer, { postGuid: api.carolPoll, reason: 'tea' })
    await voteInPoll(api.pod, viewer, { postGuid: api.carolPoll, answerId })

    const done = (await ida.get(postsOf(api.carol))).body[0]
    const seen = (await api.dan.get(postsOf(api.carol))).body[0]

    expect(before.poll).toMatchObject({ question: 'Tea?', participation_count: 0, already_participated: false })
    expect(done).toMatchObject({
      guid: api.carolPoll,
      interaction_counters: { comments: 0, likes: 1, reshares: 1 },
      own_interaction_state: { liked: true, reshated: true, reshared: true, subscribed: true, reported: true },
      poll: {
        participation_count: 1,
        already_participated: true,
        poll_answers: [
          { id: answerId, answer: 'black', vote_count: 1, own_answer: true },
          { id: expect.any(Number), answer: 'green', vote_count: 0, own_answer: false },
        ],
      },
    })
    expect(seen.own_interaction_state).toEqual(before.own_interaction_state)
    expect(seen.poll).toMatchObject({ participation_count: 1, already_participated: false })
  })

  it('shows the subscription of the viewer', async () => {
    await subscribeToPost(api.pod, api.eve.viewer, api.alicePost)

    expect((await api.eve.get(postsOf(api.alice))).body[0].own_interaction_state).toMatchObject({
      subscribed: true,
      liked: false,
    })
  })

  it('has coordinates with a decimal point, beside any text', async () => {
    const { jim } = await api.people('jim')
    const location = { address: 'Main Square, "lat":1,', lat: '1', lng: '-2' }
    await publish(api, jim, { text: 'where "lat":1, "lng":2}', public: true, location })

    const { text, body } = await api.alice.get(postsOf(jim))

    expect(text).toContain('"lat":1.0,"lng":-2.0}')
    expect(body[0]).toMatchObject({ body: 'where "lat":1, "lng":2}', location: { ...location, lat: 1, lng: -2 } })
  })

  it('has no location if another pod sent invalid coordinates', async () => {
    const quin = await newRemotePerson()
    const { id } = await addPost(api.pod, quin)
    await api.pod.db('locations').insert({ postId: id, address: 'Nowhere', lat: 'north', lng: '' })

    expect((await api.alice.get(postsOf(quin))).body[0]).not.toHaveProperty('location')
  })

  it('has a short title, and is not safe for work if its text says so', async () => {
    const { kim } = await api.people('kim')
    await publish(api, kim, { text: 'word '.repeat(100), public: true })
    await publish(api, kim, { text: '## T\nand more #NSFW', public: true })

    const [marked, long] = (await api.alice.get(postsOf(kim))).body

    expect(long.title).toHaveLength(70)
    expect(long.title).toMatch(/\.\.\.$/)
    expect([long.nsfw, marked.title, marked.nsfw]).toEqual([false, 'T', true])
    await kim.editProfile({ nsfw: true })
    expect((await api.alice.get(postsOf(kim))).body[1].nsfw).toBe(true)
  })

  it('has the photos with a web address, in order', async () => {
    const quin = await newRemotePerson()
    const { id } = await addPost(api.pod, quin, { text: '', providerDisplayName: 'mobile' })
    const picture = (name: string, position: number, more: Partial<Photo> = {}) =>
      api.pod
        .db('photos')
        .insert({ guid: newGuid(), authorId: quin.id, postId: id, name, position, public: true, ...more })
    await picture('b c.jpg', 1, { remotePath: 'https://q.example/uploads/', height: 3, width: 4 })
    await picture('a.jpg', 0)
    await picture('x.jpg', 2, { remotePath: 'javascript:alert(1)//' })
    await picture('y.jpg', 3, { remotePath: 'https://[/' })

    const [post] = (await api.alice.get(postsOf(quin))).body

    expect(post).toMatchObject({ body: '', title: `A post from ${quin.address}`, provider_display_name: 'mobile' })
    const local = 'https://pod.example/uploads/images'
    expect(post.photos).toEqual([
      {
        dimensions: { height: null, width: null },
        sizes: {
          raw: `${local}/a.jpg`,
          large: `${local}/scaled_full_a.jpg`,
          medium: `${local}/thumb_medium_a.jpg`,
          small: `${local}/thumb_small_a.jpg`,
        },
      },
      {
        dimensions: { height: 3, width: 4 },
        sizes: expect.objectContaining({ raw: 'https://q.example/uploads/b%20c.jpg' }),
      },
    ])
  })
})

describe('a reshare', () => {
  it('shows its root, and has counters and state of its own', async () => {
    const { lea } = await api.people('lea')
    await lea.post(`/posts/${api.bobPost}/likes`)
    const { body: reshare } = await lea.post(`/posts/${api.bobPost}/reshares`)

    const [post] = (await lea.get(postsOf(lea))).body

    expect(post).toMatchObject({
      guid: reshare.guid,
      post_type: 'Reshare',
      public: true,
      body: 'Post of Bob',
      title: 'Post of Bob',
      author: { guid: lea.guid },
      interaction_counters: { comments: 0, likes: 0, reshares: 0 },
      own_interaction_state: { liked: false, reshared: false },
    })
    const posts = (await lea.get(postsOf(api.bob))).body
    expect(post.root).toEqual(posts.find(({ guid }: { guid: string }) => guid === api.bobPost))
    expect(post.root.own_interaction_state).toMatchObject({ liked: true, reshared: true })
  })

  it('shows the root of a chain of reshares from another pod', async () => {
    const [quin, remy, sam] = [await newRemotePerson(), await newRemotePerson(), await newRemotePerson()]
    const first = await addPost(api.pod, quin, { type: 'Reshare', text: '', rootId: await idOf(api.bobPoll) })
    const second = await addPost(api.pod, remy, { type: 'Reshare', text: '', rootId: first.id })
    await addPost(api.pod, sam, { type: 'Reshare', text: '', rootId: second.id })

    for (const resharer of [quin, remy, sam]) {
      const [post] = (await api.alice.get(postsOf(resharer))).body

      expect(post).toMatchObject({
        body: 'Poll of Bob',
        poll: { question: 'Noon?' },
        root: { guid: api.bobPoll, poll: { question: 'Noon?' } },
      })
      expect(post.root).not.toHaveProperty('root')
    }
  })

  it('has no root if a reshare in the chain has lost its root', async () => {
    const [quin, remy] = [await newRemotePerson(), await newRemotePerson()]
    const lost = await addPost(api.pod, quin, { type: 'Reshare', text: '' })
    await addPost(api.pod, remy, { type: 'Reshare', text: '', rootId: lost.id })

    const [post] = (await api.alice.get(postsOf(remy))).body

    expect(post).toMatchObject({ body: '', title: `A post from ${remy.address}` })
    expect(post).not.toHaveProperty('root')
  })

  it('has no root after the root was deleted', async () => {
    const quin = await newRemotePerson()
    await quin.$relatedQuery('profile', api.pod.db).patch({ nsfw: true })
    await addPost(api.pod, quin, { type: 'Reshare', text: '' })

    const [post] = (await api.alice.get(postsOf(quin))).body

    expect(post).toMatchObject({ body: '', nsfw: false, title: `A post from ${quin.address}` })
    expect(post).not.toHaveProperty('root')
  })

  it('has no root if the root is not public', async () => {
    const quin = await newRemotePerson()
    const secret = await addPost(api.pod, quin, { text: 'a secret', public: false })
    const remy = await newRemotePerson()
    await addPost(api.pod, remy, { type: 'Reshare', text: '', rootId: secret.id })

    const { text, body } = await api.alice.get(postsOf(remy))

    expect(body[0]).toMatchObject({ post_type: 'Reshare', body: '' })
    expect(text).not.toContain('a secret')
  })

  it('is listed beside its root, each at its own time', async () => {
    const quin = await newRemotePerson()
    const root = await addPost(api.pod, quin, { text: 'root' })
    const reshare = await addPost(api.pod, quin, { type: 'Reshare', text: '', rootId: root.id })
    const later = await addPost(api.pod, quin, { text: 'later' })

    const posts = (await api.alice.get(postsOf(quin))).body

    expect(guidsOf(posts)).toEqual([later.guid, reshare.guid, root.guid])
    expect(posts[1].root.guid).toBe(root.guid)
  })
})

describe('paging', () => {
  const MOMENT = '2025-03-01T08:15:30.250Z'
  let quin: Awaited<ReturnType<typeof newRemotePerson>>
  let guids: string[]
  beforeAll(async () => {
    quin = await newRemotePerson()
    guids = []
    for (let i = 0; i < 40; i += 1) guids.unshift((await addPost(api.pod, quin, { createdAt: new Date(MOMENT) })).guid)
  })

  it('gives each of 40 posts of one millisecond exactly once, and no next page after the last', async () => {
    expect(guidsOf(await readAllPages(api.alice, postsOf(quin, '?per_page=7')))).toEqual(guids)
  })

  it('returns the same in the other direction', async () => {
    const start = '?per_page=7&after=2025-03-01'

    expect(guidsOf(await readAllPages(api.alice, postsOf(quin, start)))).toEqual(guids.toReversed())
  })

  it.each([
    ['', 15],
    ['?per_page=0', 1],
    ['?per_page=-5', 1],
    ['?per_page=1000', 40],
  ])('%j gives %i posts', async (query, count) => {
    expect((await api.alice.get(postsOf(quin, query))).body).toHaveLength(count)
  })

  it('returns at most a hundred posts', async () => {
    const remy = await newRemotePerson()
    await Post.query(api.pod.db).insert(
      Array.from(
        { length: 101 },
        () => ({ guid: newGuid(), authorId: remy.id, type: 'StatusMessage', public: true, text: 'x' }) as const,
      ),
    )

    const answer = await api.alice.get(postsOf(remy, '?per_page=1000'))

    expect(answer.body).toHaveLength(100)
    expect((await api.alice.get(answer.links.next ?? '')).body).toHaveLength(1)
  })

  it('has links with the other parameters, and a link to newer posts', async () => {
    const answer = await api.alice.get(postsOf(quin, '?per_page=40&note=a%26b%3E%20c&before_id=1&page=2'))

    const previous = new URL(answer.links.previous ?? '')
    expect(answer.links.next).toBe(undefined)
    expect(previous.origin + previous.pathname).toBe(`https://pod.example/api/v1${postsOf(quin)}`)
    expect(Object.fromEntries(previous.searchParams)).toEqual({
      per_page: '40',
      note: 'a&b> c',
      page: '2',
      after: MOMENT,
      after_id: String(await idOf(guids[0] ?? '')),
    })
    const empty = await api.alice.get(answer.links.previous ?? '')
    expect([empty.body, empty.headers.link]).toEqual([[], undefined])

    const fresh = await addPost(api.pod, quin, { createdAt: new Date(MOMENT) })
    guids.unshift(fresh.guid)
    expect(guidsOf((await api.alice.get(answer.links.previous ?? '')).body)).toEqual([fresh.guid])
  })

  it('uses `before` if both are given, exclusively', async () => {
    const remy = await newRemotePerson()
    const at = async (time: string) => (await addPost(api.pod, remy, { createdAt: new Date(time) })).guid
    const [one, two, three] = [
      await at('2025-01-01T00:00:00.000Z'),
      await at('2025-01-02T00:00:00.000Z'),
      await at('2025-01-03T00:00:00.500Z'),
    ]
    const listPosts = async (query: string) => guidsOf((await api.alice.get(postsOf(remy, query))).body)

    expect(await listPosts('?before=2025-01-02T00:00:00.000Z')).toEqual([one])
    expect(await listPosts('?after=2025-01-02T00:00:00.000Z')).toEqual([three])
    expect(await listPosts('?after=2024-12-31&before=2025-01-03')).toEqual([two, one])
    expect(await listPosts('?before=2025-01-03T02:00:00.5+02:00')).toEqual([two, one])
    expect(await listPosts('?before=2025-01-03T02:00:00.5001%2B0200')).toEqual([three, two, one])
    expect(await listPosts('?after=2025-01-03T00:00:00.4999Z')).toEqual([three])
    expect(await listPosts('?after=2025-01-03T00:00:00.5009Z')).toEqual([])
    expect(await listPosts('?before=9999-12-31T23:59:60.9999-23:59')).toEqual([three, two, one])
    expect(await listPosts('?after=0000-01-01T00:00:00%2B23:59')).toEqual([one, two, three])
  })

  it.each([
    'before=soon',
    'before=',
    'before=2025-02-30',
    'before=2025-01-01T24:00:00Z',
    'before=2025-01-01T00:00:00',
    'before=2025-13-01',
    'before=1735689600',
    'after=2025-01-01T00:00:00Z&after=2025-01-02T00:00:00Z',
    'before=2025-01-01&before_id=x',
    'before=2025-01-01&before_id=-1',
    'before=2025-01-01&before_id=99999999999999999999',
    'per_page=x',
    'per_page=',
    'per_page=1.5',
    'per_page=1&per_page=2',
  ])('refuses %s', async (query) => {
    expectError(await api.alice.get(postsOf(quin, `?${query}`)), 422)
  })
})

describe('database costs', () => {
  let mia: ApiPerson
  beforeEach(async () => {
    ;({ mia } = await api.people('mia'))
  })

  it('the list costs two statements for any number of posts (authentication, posts), and one more for an empty list (the person)', async () => {
    const count = () => statementsDuring(() => api.alice.get(postsOf(mia, '?per_page=100')))
    expect(await count()).toBe(3)

    await share(api, mia, api.alice)
    for (const root of [api.bobPost, api.bobPoll, api.carolPoll]) await mia.post(`/posts/${root}/reshares`)
    for (let i = 0; i < 10; i += 1) {
      const post = { text: `@{${api.bob.address}} ${i}`, poll: { question: 'Now?', answers: ['y', 'n'] } }
      await publish(api, mia, { ...post, public: i % 2 === 0, aspectIds: [await aspectOf(api, mia, 'Friends')] })
    }

    expect((await api.alice.get(postsOf(mia))).body).toHaveLength(13)
    expect(await count()).toBe(2)
  })
})
