import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createLike } from '../../../src/domain/interactions/likes.js'
import { subscribeToPost } from '../../../src/domain/interactions/post-interactions.js'
import { voteInPoll } from '../../../src/domain/interactions/votes.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost, showPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

const STREAMS = ['main', 'aspects', 'activity', 'mentions', 'tags', 'liked', 'commented'] as const
const MOMENT = new Date('2025-03-01T08:15:30.250Z')

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

type Client = Pick<ApiPerson, 'get'>
const guidsOf = (posts: readonly { guid: string }[]) => posts.map(({ guid }) => guid)
const read = async (client: Client, path: string): Promise<string[]> => {
  const answer = await client.get(`/streams/${path}`)
  expect(answer.status).toBe(200)
  return guidsOf(answer.body)
}
const comment = (who: ApiPerson, guid: string, body = 'Tea?') => who.post(`/posts/${guid}/comments`, { body })

/** A new person, isolated from the other tests. */
let newcomers = 0
async function newcomer(): Promise<ApiPerson> {
  newcomers += 1
  const name = `newcomer${newcomers}`
  const { [name]: person } = await api.people(name)
  if (person === undefined) throw new Error('No person was found.')
  return person
}

async function newRemotePerson() {
  newcomers += 1
  return addRemotePerson(api.pod, `quin${newcomers}@q.example`)
}

async function shareWithRemotePerson(who: ApiPerson, guid: string): Promise<void> {
  await share(api, who, { guid })
}

async function follow(who: ApiPerson, name: string): Promise<void> {
  expect((await who.post('/tag_followings', { name })).status).toBe(204)
}

describe.each(STREAMS)('GET /streams/%s', (stream) => {
  it('requires a token', async () => {
    expectError(await api.call({ path: `/streams/${stream}` }), 401)
  })

  it.each(['before=soon', 'after=2025-02-30', 'per_page=x', 'before_id=-1', 'per_page=%00'])(
    'refuses %s',
    async (query) => {
      expectError(await api.alice.get(`/streams/${stream}?${query}`), 422)
    },
  )

  it('is empty for a new person', async () => {
    const answer = await (await newcomer()).get(`/streams/${stream}`)

    expect([answer.status, answer.body, answer.headers.link]).toEqual([200, [], undefined])
  })
})

describe('GET /streams/main', () => {
  it('has own posts, posts of people in aspects, posts with followed tags and mentions of the reader, newest first', async () => {
    const [reader, friend, other, unrelated] = [await newcomer(), await newcomer(), await newcomer(), await newcomer()]
    await share(api, reader, friend)
    await share(api, friend, reader)
    await share(api, unrelated, reader)
    await follow(reader, 'tea')
    const own = await publish(api, reader, { text: 'mine', public: true })
    const hers = await publish(api, friend, { text: 'hers', public: true })
    const shown = await publish(api, friend, {
      text: 'hers for friends',
      public: false,
      aspectIds: [await aspectOf(api, friend, 'Friends')],
    })
    await publish(api, friend, { text: 'for others', public: false, aspectIds: [await aspectOf(api, friend, 'Work')] })
    const tagged = await publish(api, other, { text: 'some #Tea', public: true })
    const naming = await publish(api, other, { text: `dear @{${reader.address}}`, public: true })
    await publish(api, other, { text: 'neither', public: true })
    // Who shares with the reader and is not shared with has to name them.
    const privately = { public: false, aspectIds: [await aspectOf(api, unrelated, 'Friends')] }
    await publish(api, unrelated, { text: 'some #tea for friends', ...privately })
    const namingPrivately = await publish(api, unrelated, { text: `dear @{${reader.address}}`, ...privately })
    const everything = await publish(api, friend, { text: `#tea for @{${reader.address}}`, public: true })

    expect(await read(reader, 'main')).toEqual([everything, namingPrivately, naming, tagged, shown, hers, own])
    expect(await read(await reader.with(), 'main')).toEqual([everything, naming, tagged, hers, own])
  })

  it('shows posts as all lists do', async () => {
    const [reader, friend] = [await newcomer(), await newcomer()]
    await share(api, reader, friend)
    await createReshare(api.pod, friend.viewer, api.bobPost)
    await reader.post(`/posts/${api.bobPost}/likes`)

    expect((await reader.get('/streams/main')).body).toEqual((await reader.get(`/users/${friend.guid}/posts`)).body)
  })

  it('omits posts by a blocked person; reshares of them by other people stay', async () => {
    const [reader, friend] = [await newcomer(), await newcomer()]
    await share(api, reader, friend)
    await follow(reader, 'blocked60')
    const text = `#blocked60 @{${reader.address}}`
    const hers = await publish(api, api.carol, { text, public: true })
    const reshare = await createReshare(api.pod, friend.viewer, hers)
    await createLike(api.pod, reader.viewer, { postGuid: hers })
    await comment(reader, hers)
    const streams = ['main', 'mentions', 'tags', 'liked', 'commented', 'activity']
    for (const stream of streams)
      expect([stream, await read(reader, stream)]).toContainEqual(expect.arrayContaining([hers]))

    expect((await reader.post(`/users/${api.carol.guid}/block`)).status).toBe(201)

    for (const stream of streams)
      expect([stream, await read(reader, stream)]).not.toContainEqual(expect.arrayContaining([hers]))
    expect(await read(reader, 'main')).toEqual([reshare.guid])
    expect((await reader.get(`/posts/${hers}`)).status).toBe(200)
  })

  it('omits hidden posts until they are shown again', async () => {
    const reader = await newcomer()
    await share(api, reader, api.bob)
    const before = await read(reader, 'main')
    expect(before).toEqual([api.bobPoll, api.bobPost])

    expect((await reader.post(`/posts/${api.bobPost}/hide`, { hide: true })).status).toBe(204)
    expect(await read(reader, 'main')).toEqual([api.bobPoll])
    expect(await read(reader, 'aspects')).toEqual([api.bobPoll])

    expect((await reader.post(`/posts/${api.bobPost}/hide`, { hide: false })).status).toBe(204)
    expect(await read(reader, 'main')).toEqual(before)
  })

  it('leaves hidden posts out of every stream', async () => {
    const reader = await newcomer()
    await follow(reader, 'hidden')
    const text = `#hidden @{${reader.address}}`
    const post = await publish(api, api.carol, { text, public: true })
    await createLike(api.pod, reader.viewer, { postGuid: post })
    await comment(reader, post)
    const streams = ['main', 'mentions', 'tags', 'liked', 'commented', 'activity']
    for (const stream of streams) expect([stream, await read(reader, stream)]).toEqual([stream, [post]])

    await reader.post(`/posts/${post}/hide`, { hide: true })

    for (const stream of streams) expect([stream, await read(reader, stream)]).toEqual([stream, []])
  })

  it('omits posts of people who were removed from all aspects', async () => {
    const [reader, friend] = [await newcomer(), await newcomer()]
    const aspect = await aspectOf(api, reader, 'Friends')
    await share(api, reader, friend)
    const hers = await publish(api, friend, { text: 'hers', public: true })
    expect(await read(reader, 'main')).toEqual([hers])

    await reader.delete(`/aspects/${aspect}/contacts/${friend.guid}`)

    expect(await read(reader, 'main')).toEqual([])
  })

  it('takes three statements at most', async () => {
    await read(api.alice, 'main')
    expect(await statementsDuring(() => read(api.alice, 'main'))).toBeLessThanOrEqual(3)
  })
})

describe('pages', () => {
  /** Wrote all that is to be paged through. */
  let author: Awaited<ReturnType<typeof newRemotePerson>>
  let reader: ApiPerson
  let newestFirst: string[]

  beforeAll(async () => {
    author = await newRemotePerson()
    reader = await newcomer()
    newestFirst = []
    await shareWithRemotePerson(reader, author.guid)
    const db = api.pod.db
    const [tag] = await db('tags').insert({ name: 'paged' }).returning('id')
    await db('tagFollowings').insert({ userId: reader.viewer.userId, tagId: tag.id })
    const { personId, userId } = reader.viewer
    for (let i = 0; i < 40; i += 1) {
      // Every third is private, and was shown to the reader.
      const post = await addPost(api.pod, author, { createdAt: MOMENT, interactedAt: MOMENT, public: i % 3 > 0 })
      const postId = post.id
      newestFirst.unshift(post.guid)
      await showPost(api.pod, post, reader.viewer)
      const said = { postId, authorId: personId, postCreatedAt: MOMENT }
      await db('taggings').insert({ tagId: tag.id, postId, createdAt: MOMENT })
      await db('mentions').insert({ personId, postId, createdAt: MOMENT })
      await db('likes').insert({ guid: `like-of-the-paged-${postId}`, ...said })
      await db('participations').insert({ guid: `part-of-the-paged-${postId}`, postId, authorId: personId })
      await db('activity_entries').insert({ userId, postId, interactedAt: MOMENT })
      for (const n of [1, 2, 3]) {
        await db('comments').insert({ guid: `comment-of-the-paged-${postId}-${n}`, text: 'Tea', ...said })
      }
    }
  })

  it.each(STREAMS)(
    'of %s contain each of 40 posts of one millisecond exactly once, and none is empty',
    async (stream) => {
      expect(guidsOf(await readAllPages(reader, `/streams/${stream}?per_page=7`))).toEqual(newestFirst)
    },
  )

  it.each(STREAMS)('of %s contain the same in the other direction', async (stream) => {
    const oldestFirst = newestFirst.toReversed()
    expect(guidsOf(await readAllPages(reader, `/streams/${stream}?per_page=7&after=2025-03-01`))).toEqual(oldestFirst)
  })

  it.each([
    ['?per_page=0', 1],
    ['?per_page=1000', 40],
    ['', 15],
  ])('%j gives %i posts', async (query, count) => {
    for (const stream of STREAMS) expect([stream, (await read(reader, stream + query)).length]).toEqual([stream, count])
  })

  it('has at most a hundred posts', async () => {
    const much = await newcomer()
    await Post.query(api.pod.db).insert(
      Array.from({ length: 101 }, (_, index) => {
        const guid = `of-the-many-0${index + 1_000}`
        return { guid, authorId: much.viewer.personId, type: 'StatusMessage', public: true, text: 'x' } as const
      }),
    )

    const answer = await much.get('/streams/main?per_page=1000')

    expect(answer.body).toHaveLength(100)
    expect((await much.get(answer.links.next ?? '')).body).toHaveLength(1)
  })

  it.each(STREAMS)('of %s link to older posts only', async (stream) => {
    const answer = await reader.get(`/streams/${stream}?per_page=7`)

    expect(Object.keys(answer.links)).toEqual(['next'])
    expect((await reader.get(`/streams/${stream}?per_page=100`)).headers.link).toBeUndefined()
  })

  it('continue after a request with the maximal time', async () => {
    for (const stream of STREAMS) {
      for (const time of ['before=9999-12-31T23:59:59Z', 'after=0000-01-01T00:00:00Z']) {
        const first = await reader.get(`/streams/${stream}?per_page=3&${time}`)
        const second = await reader.get(first.links.next ?? first.links.previous ?? '')
        const newest = await reader.get(`/streams/${stream}?per_page=3`)
        const next = await reader.get(newest.links.next ?? '')

        expect([stream, time, first.status, second.status, next.status]).toEqual([stream, time, 200, 200, 200])
        expect(next.body).toHaveLength(3)
      }
    }
  })

  it('keep the other parameters', async () => {
    const aspect = await aspectOf(api, reader, 'Friends')

    const { links } = await reader.get(`/streams/aspects?aspect_ids=[${aspect}]&per_page=7&note=a%26b`)

    expect(Object.fromEntries(new URL(links.next ?? '').searchParams)).toEqual({
      aspect_ids: `[${aspect}]`,
      per_page: '7',
      note: 'a&b',
      before: MOMENT.toISOString(),
      before_id: expect.any(String),
    })
  })

  it('omit private posts where the token has no scope for them', async () => {
    const shown = await Post.query(api.pod.db)
      .whereIn('guid', newestFirst)
      .where({ public: true })
      .orderBy('id', 'desc')
    const client = await reader.with('tags:read')
    for (const stream of STREAMS.filter((name) => name !== 'aspects')) {
      const posts = await readAllPages(client, `/streams/${stream}?per_page=7`)
      expect([stream, guidsOf(posts)]).toEqual([stream, guidsOf(shown)])
    }
  })
})

describe('GET /streams/aspects', () => {
  it('needs both contacts:read and private:read', async () => {
    for (const client of [await api.alice.with('contacts:read'), await api.alice.with()]) {
      expectError(await client.get('/streams/aspects'), 403)
    }
    expect((await (await api.alice.with('contacts:read', 'private:read')).get('/streams/aspects')).status).toBe(200)
  })

  it('has the posts of the people in these aspects, and the user’s own posts that are public or for these aspects', async () => {
    const reader = await newcomer()
    const [friend, colleague] = [await newcomer(), await newcomer()]
    const [friends, work, family] = [
      await aspectOf(api, reader, 'Friends'),
      await aspectOf(api, reader, 'Work'),
      await aspectOf(api, reader, 'Family'),
    ]
    await share(api, reader, friend)
    await share(api, reader, colleague, 'Work')
    await share(api, colleague, reader)
    const own = await publish(api, reader, { text: 'mine', public: true })
    const forWork = await publish(api, reader, { text: 'for work', public: false, aspectIds: [work, family] })
    const hers = await publish(api, friend, { text: 'hers', public: true })
    const his = await publish(api, colleague, {
      text: 'his',
      public: false,
      aspectIds: [await aspectOf(api, colleague, 'Friends')],
    })
    const all = [his, hers, forWork, own]

    expect(await read(reader, `aspects?aspect_ids=[${friends}]`)).toEqual([hers, own])
    expect(await read(reader, `aspects?aspect_ids=${encodeURIComponent(`[${work}, ${work}]`)}`)).toEqual([
      his,
      forWork,
      own,
    ])
    expect(await read(reader, `aspects?aspect_ids=[${friends},${work}]`)).toEqual(all)
    for (const query of ['', '?aspect_ids=', '?aspect_ids=[]'])
      expect(await read(reader, `aspects${query}`)).toEqual(all)
  })

  it('ignores aspects of other users', async () => {
    expect(await read(api.alice, `aspects?aspect_ids=[${api.friendsAspectId},999999999]`)).toEqual([
      api.bobPoll,
      api.bobFriendsPost,
      api.bobPost,
      api.alicePost,
    ])
    expect(await read(api.bob, `aspects?aspect_ids=[${api.friendsAspectId},-1]`)).toEqual([api.bobPoll, api.bobPost])
  })

  it.each([
    'x',
    '1',
    '{}',
    '[1',
    '["1"]',
    '[1.5]',
    '[null]',
    '[[1]]',
    '"[1]"',
    'null',
    '[99999999999999999999]',
    '%00',
  ])('refuses aspect_ids=%s', async (ids) => {
    expectError(await api.alice.get(`/streams/aspects?aspect_ids=${ids}`), 422)
  })
})

describe('GET /streams/activity', () => {
  let reader: ApiPerson
  let posts: string[]
  beforeEach(async () => {
    reader = await newcomer()
    posts = []
    for (const text of ['oldest', 'older', 'old']) posts.unshift(await publish(api, reader, { text, public: true }))
  })

  it('a comment moves an old post to the top, a like or a vote does not', async () => {
    const [old = '', older = '', oldest = ''] = posts
    expect(await read(reader, 'activity')).toEqual([old, older, oldest])

    await createLike(api.pod, api.bob.viewer, { postGuid: oldest })
    expect(await read(reader, 'activity')).toEqual([old, older, oldest])

    await comment(api.bob, oldest)
    expect(await read(reader, 'activity')).toEqual([oldest, old, older])
    expect(await read(api.bob, 'activity')).toContain(oldest)
  })

  it('is paged by the last comment', async () => {
    const [old = '', older = '', oldest = ''] = posts
    await comment(api.bob, older)
    await comment(api.bob, oldest)

    expect(guidsOf(await readAllPages(reader, '/streams/activity?per_page=1'))).toEqual([oldest, older, old])
    const [said] = (await reader.get(`/posts/${oldest}/comments`)).body
    const { links } = await reader.get('/streams/activity?per_page=1')
    expect(new URL(links.next ?? '').searchParams.get('before')).toBe(said.created_at)
  })

  it('lists posts that the reader has liked, voted on, reshared, commented on or subscribed to, until they are muted', async () => {
    const { viewer } = reader
    const [answer] = (await reader.get(`/posts/${api.carolPoll}`)).body.poll.poll_answers
    await createLike(api.pod, viewer, { postGuid: api.alicePost })
    await voteInPoll(api.pod, viewer, { postGuid: api.carolPoll, answerId: answer.id })
    const reshare = await createReshare(api.pod, viewer, api.bobPost)
    await subscribeToPost(api.pod, viewer, api.bobPoll)
    const activity = new Set(await read(reader, 'activity'))
    expect(activity).toEqual(new Set([reshare.guid, ...posts, api.alicePost, api.carolPoll, api.bobPost, api.bobPoll]))

    await reader.post(`/posts/${api.bobPoll}/mute`)
    await reader.delete(`/posts/${api.alicePost}/likes`)

    activity.delete(api.bobPoll)
    activity.delete(api.alicePost)
    expect(new Set(await read(reader, 'activity'))).toEqual(activity)
  })

  it('has a post at the time of the previous comment after the last one is deleted', async () => {
    const [old = '', , oldest = ''] = posts
    await comment(api.bob, oldest)
    const late = await newcomer()
    for (const guid of [oldest, old]) await subscribeToPost(api.pod, late.viewer, guid)

    expect(await read(late, 'activity')).toEqual([oldest, old])
  })
})

describe('the streams of posts by interaction', () => {
  it('have the posts that the reader likes, until the like is retracted', async () => {
    const reader = await newcomer()
    await createLike(api.pod, reader.viewer, { postGuid: api.bobPost })
    await createLike(api.pod, reader.viewer, { postGuid: api.alicePost })
    const { guid } = (await comment(api.bob, api.bobPoll)).body
    await createLike(api.pod, reader.viewer, { postGuid: api.bobPoll, commentGuid: guid })

    expect(await read(reader, 'liked')).toEqual([api.bobPost, api.alicePost])
    await reader.delete(`/posts/${api.bobPost}/likes`)
    expect(await read(reader, 'liked')).toEqual([api.alicePost])
  })

  it('have each post with a comment of the reader once', async () => {
    const reader = await newcomer()
    const written = [
      await comment(reader, api.alicePost),
      await comment(reader, api.bobPost),
      await comment(reader, api.alicePost),
    ]

    expect(await read(reader, 'commented')).toEqual([api.bobPost, api.alicePost])

    for (const [index, { body }] of written.entries()) {
      if (index !== 1) await reader.delete(`/posts/${api.alicePost}/comments/${body.guid}`)
    }
    expect(await read(reader, 'commented')).toEqual([api.bobPost])
  })

  it('have the posts that mention the reader, and no comments', async () => {
    const reader = await newcomer()
    const naming = await publish(api, api.bob, { text: `Dear @{${reader.address}}`, public: true })
    await comment(api.bob, api.alicePost, `Dear @{${reader.address}}`)

    expect(await read(reader, 'mentions')).toEqual([naming])
  })

  it('have the posts with a tag that the reader follows, also private ones that the reader sees', async () => {
    const [reader, friend] = [await newcomer(), await newcomer()]
    await share(api, friend, reader)
    await follow(reader, '#Cocoa')
    await follow(reader, 'milk')
    const both = await publish(api, api.bob, { text: '#milk and #cocoa', public: true })
    const aspectIds = [await aspectOf(api, friend, 'Friends')]
    const shown = await publish(api, friend, { text: '#MILK', public: false, aspectIds })
    await publish(api, api.bob, { text: '#milk', public: false, aspectIds: [await aspectOf(api, api.bob, 'Work')] })
    await comment(api.bob, api.alicePost, '#milk')
    const own = await publish(api, reader, { text: '#cocoa', public: true })

    expect(await read(reader, 'tags')).toEqual([own, shown, both])
    expectError(await (await reader.with()).get('/streams/tags'), 403)
  })
})
