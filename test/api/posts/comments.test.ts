import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { blockForUser } from '../../../src/domain/people/blocks.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

let api: SampleApiPod
let alice: ApiPerson
let bob: ApiPerson
let carol: ApiPerson
let dan: ApiPerson

/** A public post of Bob's that nothing has happened to. */
let post: string
const write = async (who: ApiPerson, body: string, under = post): Promise<string> => {
  const answer = await who.post(`/posts/${under}/comments`, { body })
  expect(answer.status).toBe(201)
  return answer.body.guid
}
const commentsUnder = async (guid: string, reader: Pick<ApiPerson, 'get'> = alice) =>
  (await reader.get(`/posts/${guid}/comments`)).body
const bodiesOf = (comments: readonly { readonly body: string }[]) => comments.map(({ body }) => body)

describe.each(queueBackends)('with the queue in $store', (backend) => {
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob, carol, dan } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Good morning', public: true })
  })

  describe('GET /posts/:post_guid/comments', () => {
    it('lists comments, the oldest first, with their interactions', async () => {
      const first = await write(alice, 'One')
      await write(carol, `Two, @{${bob.address}}`)
      await dan.post(`/posts/${post}/comments/${first}/likes`)

      const answer = await (await alice.with()).get(`/posts/${post}/comments`)

      expect(answer.status).toBe(200)
      expect(answer.body).toEqual([
        {
          guid: first,
          created_at: expect.any(String),
          author: expect.objectContaining({ guid: alice.guid, network_id: 'alice@pod.example' }),
          body: 'One',
          mentioned_people: [],
          interactions: { liked: false, likes_count: 1 },
          reported: false,
        },
        {
          guid: expect.any(String),
          created_at: expect.any(String),
          author: expect.objectContaining({ guid: carol.guid }),
          body: `Two, @{${bob.address}}`,
          mentioned_people: [expect.objectContaining({ guid: bob.guid })],
          interactions: { liked: false, likes_count: 0 },
          reported: false,
        },
      ])
      expect((await commentsUnder(post, dan))[0].interactions).toEqual({ liked: true, likes_count: 1 })
    })

    it('answers 404 for unknown and invisible posts', async () => {
      for (const guid of [newGuid(), api.bobWorkPost, '1', 'x', '%00', 'x'.repeat(400)]) {
        expectError(await alice.get(`/posts/${guid}/comments`), 404)
      }
    })

    it('shows comments under private posts only to tokens with private:read', async () => {
      await write(alice, 'Psst', api.bobFriendsPost)

      expect(bodiesOf(await commentsUnder(api.bobFriendsPost, await alice.with('private:read')))).toContain('Psst')
      expectError(await (await alice.with('interactions')).get(`/posts/${api.bobFriendsPost}/comments`), 404)
      expectError(await (await bob.with('interactions')).get(`/posts/${api.bobFriendsPost}/comments`), 404)
      expectError(await carol.get(`/posts/${api.bobFriendsPost}/comments`), 404)
    })
  })

  describe('POST /posts/:post_guid/comments', () => {
    it('returns the new comment with its mentions and without interactions', async () => {
      const body = `hi @{${alice.address}} and @{${alice.address}}, and @{nobody@nowhere.example}`

      const answer = await alice.post(`/posts/${api.bobPost}/comments`, { body: ` ${body}\n` })

      expect(answer.status).toBe(201)
      expect(answer.body).toEqual({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        created_at: expect.any(String),
        author: expect.objectContaining({ guid: alice.guid }),
        body,
        mentioned_people: [expect.objectContaining({ guid: alice.guid })],
      })
      expect(await commentsUnder(api.bobPost)).toContainEqual(expect.objectContaining(answer.body))
    })

    it('returns mentions in the old form unchanged', async () => {
      const body = `hi @{Bob the Builder; ${bob.address}}`

      const answer = await alice.post(`/posts/${post}/comments`, { body })

      expect(answer.body).toMatchObject({ body, mentioned_people: [{ guid: bob.guid }] })
    })

    it('accepts texts of 1 to 65 535 characters', async () => {
      const longest = '\u{1f408}'.repeat(65_535)
      for (const body of [{ body: '' }, { body: ' \n\t' }, {}, { body: 'x'.repeat(65_536) }, { body: `${longest}.` }]) {
        expectError(await alice.post(`/posts/${post}/comments`, body), 422)
      }
      for (const body of [{ body: null }, { body: 5 }, { body: ['x'] }, { body: 'a\u0000b' }, { body: 'a\ud800b' }]) {
        expectError(await alice.post(`/posts/${post}/comments`, body), 422)
      }
      expect(await commentsUnder(post)).toEqual([])

      expect((await alice.post(`/posts/${post}/comments`, { body: longest })).status).toBe(201)
      expect(bodiesOf(await commentsUnder(post))).toEqual([longest])
    })

    it('accepts forms; other types are a 415, unreadable bodies a 422', async () => {
      const send = (type: string, body: string) =>
        api.call({
          method: 'POST',
          path: `/posts/${post}/comments`,
          token: alice.token,
          body,
          headers: { 'content-type': type },
        })

      expect((await send('application/x-www-form-urlencoded', 'body=from+a+form&more=1')).status).toBe(201)
      expectError(await send('application/json', '{'), 422)
      expectError(await send('application/json', '[]'), 422)
      expectError(await send('application/json', ''), 422)
      expectError(await send('text/plain', 'hello'), 415)
      expectError(await send('application/json', `{"body":"${'x'.repeat(1_100_000)}"}`), 413)
      expect(bodiesOf(await commentsUnder(post))).toEqual(['from a form'])
    })

    it('a missing or invisible post is a 404, for every body', async () => {
      for (const guid of [newGuid(), api.bobWorkPost, 'x']) {
        for (const body of [{ body: 'hi' }, { body: '' }, {}]) {
          expectError(await alice.post(`/posts/${guid}/comments`, body), 404)
        }
      }
    })

    it('needs private:read under a private post', async () => {
      const body = { body: 'Yes?' }

      expectError(await (await alice.with('interactions')).post(`/posts/${api.bobFriendsPost}/comments`, body), 404)
      const answer = await (await alice.with('interactions', 'private:read')).post(
        `/posts/${api.bobFriendsPost}/comments`,
        body,
      )

      expect(answer.status).toBe(201)
    })

    it('needs the scope interactions', async () => {
      const answer = await (await alice.with('private:read')).post(`/posts/${post}/comments`, { body: 'hi' })

      expectError(answer, 403)
      expect(answer.headers['www-authenticate']).toContain('scope="interactions"')
    })

    it('a comment by a person whom the author blocks is rejected and leaves no trace', async () => {
      const { fred, gina } = await api.people('fred', 'gina')
      const theirs = await publish(api, fred, { text: 'Leave me alone', public: true })
      await blockForUser(api.pod, fred.viewer, gina.guid)

      expectError(await gina.post(`/posts/${theirs}/comments`, { body: 'Hello?' }), 422)

      expect(await commentsUnder(theirs)).toEqual([])
    })

    it('raises the counter and subscribes the author', async () => {
      await write(alice, 'One')
      await write(alice, 'Two')

      const [shown] = (await alice.get(`/users/${bob.guid}/posts`)).body
      expect(shown).toMatchObject({
        guid: post,
        interaction_counters: { comments: 2 },
        own_interaction_state: { subscribed: true },
      })
    })
  })

  describe('DELETE /posts/:post_guid/comments/:comment_guid', () => {
    it('deletes the own comment once', async () => {
      const comment = await write(alice, 'Oops')

      const answer = await alice.delete(`/posts/${post}/comments/${comment}`)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expect(await commentsUnder(post)).toEqual([])
      expectError(await alice.delete(`/posts/${post}/comments/${comment}`), 410)
    })

    it('the author of the post may delete comments on it', async () => {
      const comment = await write(bob, 'Buy cheap watches', api.alicePost)

      expect((await alice.delete(`/posts/${api.alicePost}/comments/${comment}`)).status).toBe(204)
      expect(bodiesOf(await commentsUnder(api.alicePost))).not.toContain('Buy cheap watches')
    })

    it('does not delete comments of others under posts of others', async () => {
      const comment = await write(bob, 'Mine')

      expectError(await alice.delete(`/posts/${post}/comments/${comment}`), 403)
      expectError(await carol.delete(`/posts/${post}/comments/${comment}`), 403)
      expect(bodiesOf(await commentsUnder(post))).toEqual(['Mine'])
    })

    it('answers 404 for a comment of another post', async () => {
      const comment = await write(alice, 'Here')

      expectError(await alice.delete(`/posts/${api.bobPost}/comments/${comment}`), 410)
      expectError(await alice.delete(`/posts/${post}/comments/${newGuid()}`), 410)
      expect(bodiesOf(await commentsUnder(post))).toEqual(['Here'])
    })

    it('answers 404 for unknown and invisible posts', async () => {
      const comment = await write(bob, 'Secret', api.bobWorkPost)

      expectError(await alice.delete(`/posts/${newGuid()}/comments/${comment}`), 404)
      expectError(await alice.delete(`/posts/${api.bobWorkPost}/comments/${comment}`), 404)
      expectError(await (await bob.with('interactions')).delete(`/posts/${api.bobWorkPost}/comments/${comment}`), 404)
    })

    it('needs the scope interactions', async () => {
      const comment = await write(alice, 'Mine')

      expectError(await (await alice.with()).delete(`/posts/${post}/comments/${comment}`), 403)
    })
  })
})

describe('pages of comments', () => {
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice, bob, carol, dan } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, { text: 'Good morning', public: true })
  })

  /** Written at this time, each later one a second later where there is a step. */
  async function fill(count: number, step = 0): Promise<string[]> {
    const { id: postId } = await api.pod.db('posts').where({ guid: post }).first('id')
    const rows = Array.from({ length: count }, (_, index) => ({
      guid: newGuid(),
      postId,
      authorId: index % 2 ? carol.viewer.personId : alice.viewer.personId,
      text: `Comment ${index}`,
      createdAt: new Date(Date.UTC(2025, 0, 1, 12, 0, index * step, 250)),
    }))
    await api.pod.db('comments').insert(rows)
    return rows.map(({ guid }) => guid)
  }
  const guidsOf = (comments: readonly { readonly guid: string }[]) => comments.map(({ guid }) => guid)

  it('begin with the oldest 15 and end with the newest', async () => {
    const written = await fill(20, 1)

    const first = await alice.get(`/posts/${post}/comments`)
    const second = await alice.get(first.links.next ?? '')

    expect(guidsOf(first.body)).toEqual(written.slice(0, 15))
    expect(guidsOf(second.body)).toEqual(written.slice(15))
    expect(second.links.next).toBeUndefined()
    expect(first.links.next).toMatch(
      new RegExp(`^https://pod\\.example/api/v1/posts/${post}/comments\\?.*after=2025-01-01T12%3A00%3A14\\.250Z`),
    )
  })

  it('link to older comments', async () => {
    const written = await fill(20, 1)
    const first = await alice.get(`/posts/${post}/comments`)
    const second = await alice.get(first.links.next ?? '')

    const back = await alice.get(second.links.previous ?? '')

    expect(guidsOf(back.body)).toEqual(written.slice(0, 15).reverse())
    expect(first.links.previous).toBeDefined()
    expect((await alice.get(first.links.previous ?? '')).body).toEqual([])
  })

  it('contain each of several comments of one millisecond once', async () => {
    const written = await fill(40)

    const read = guidsOf(await readAllPages(alice, `/posts/${post}/comments?per_page=7`))

    expect(read).toEqual(written)
  })

  it('contain every comment that a request without the tie-break returns', async () => {
    const [one, two, three] = await fill(3, 1)
    const listComments = async (query: string) => guidsOf((await alice.get(`/posts/${post}/comments${query}`)).body)

    expect(await listComments('')).toEqual([one, two, three])
    expect(await listComments('?after=2025-01-01T12:00:00.250Z')).toEqual([two, three])
    expect(await listComments('?before=2025-01-01T12:00:02.250Z')).toEqual([two, one])
    expect(await listComments('?before=2025-01-01T12:00:01Z&after=2025-01-01T12:00:02Z')).toEqual([one])
    expect(await listComments('?per_page=1')).toEqual([one])
    expect(await listComments('?per_page=0')).toEqual([one])
  })

  it('answer 404 for unknown posts before 422 for invalid parameters', async () => {
    for (const query of ['before=soon', 'after=2025-02-30', 'per_page=x', 'after=2025-01-01&after_id=x']) {
      expectError(await alice.get(`/posts/${post}/comments?${query}`), 422)
      expectError(await alice.get(`/posts/${newGuid()}/comments?${query}`), 404)
    }
  })

  it('cost two statements regardless of their length: authentication and comments', async () => {
    const read = () => alice.get(`/posts/${post}/comments?per_page=100`)
    const count = () => statementsDuring(read)
    await fill(1)
    expect(await count()).toBe(2)

    for (const guid of await fill(60)) {
      const { id: commentId } = await api.pod.db('comments').where({ guid }).first('id')
      await api.pod.db('mentions').insert({ personId: bob.viewer.personId, commentId })
    }

    expect((await read()).body).toHaveLength(61)
    expect(await count()).toBe(2)
  })
})

describe('in the dialect of diaspora*', () => {
  it('a new comment carries empty interaction counts', async () => {
    await using pod = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })

    const answer = await pod.alice.post(`/posts/${pod.bobPost}/comments`, { body: 'hi' })

    expect(answer.body).toMatchObject({ interactions: { liked: false, likes_count: 0 }, reported: false })
  })
})
