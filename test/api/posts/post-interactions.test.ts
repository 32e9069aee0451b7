import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { type ApiPerson, type ApiResponse, expectError } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  let carol: ApiPerson
  /** Public posts of Alice's and Bob's that nothing has happened to. */
  let ownPost: string
  let post: string
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob, carol } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    await api.pod.db('notifications').delete()
    ownPost = await publish(api, alice, { text: 'Good morning', public: true })
    post = await publish(api, bob, { text: 'Good evening', public: true })
  })

  const interact = (who: Pick<ApiPerson, 'post'>, verb: string, guid: string, body?: object | string) =>
    who.post(`/posts/${guid}/${verb}`, body)
  const comments = async (who: ApiPerson, under: string, body = 'Well said') => {
    expect((await who.post(`/posts/${under}/comments`, { body })).status).toBe(201)
  }
  /** A person's notifications about a list of the author's posts. */
  const stateOf = async (guid: string, author: ApiPerson = bob, reader: ApiPerson = alice) => {
    const posts: ApiResponse['body'][] = (await reader.get(`/users/${author.guid}/posts`)).body
    return posts.find((each) => each.guid === guid)?.own_interaction_state
  }
  /** A person's notifications: type, target and actor. */
  const newsOf = async (who: ApiPerson) => {
    const news: ApiResponse['body'][] = (await who.get('/notifications')).body
    return news.map(({ type, target, event_creators }) => [
      type,
      target?.guid,
      ...event_creators.map(({ guid }: { readonly guid: string }) => guid),
    ])
  }

  it('subscribing makes a post subscribed, once', async () => {
    const answer = await interact(alice, 'subscribe', post)

    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(await stateOf(post)).toMatchObject({ subscribed: true })
    expectError(await interact(alice, 'subscribe', post), 409)
    expect(await stateOf(post, bob, carol)).toMatchObject({ subscribed: false })
  })

  it.each(['subscribe', 'mute'])('%s takes an empty body for none, and none that cannot be read', async (verb) => {
    const send = (body: string, type = 'application/json') =>
      api.call({
        method: 'POST',
        path: `/posts/${post}/${verb}`,
        token: alice.token,
        body,
        headers: { 'content-type': type },
      })
    if (verb === 'mute') await interact(alice, 'subscribe', post)

    expectError(await send('{'), 422)
    expectError(await send('null'), 422)
    expect(await stateOf(post)).toMatchObject({ subscribed: verb === 'mute' })
    expect((await send('')).status).toBe(204)
    expectError(await send('{"post_guid":"x"}'), verb === 'mute' ? 410 : 409)
  })

  it('answers 404 for unknown and invisible posts', async () => {
    const calls = [
      ['subscribe', undefined],
      ['mute', undefined],
      ['hide', { hide: true }],
      ['hide', {}],
      ['vote', { poll_answer: 1 }],
      ['vote', {}],
    ] as const
    for (const [verb, body] of calls) {
      for (const guid of [api.bobWorkPost, newGuid(), 'x']) expectError(await interact(alice, verb, guid, body), 404)
      expectError(await interact(await alice.with('interactions'), verb, api.bobFriendsPost, body), 404)
    }
  })

  it('needs the scope interactions', async () => {
    const reader = await alice.with('private:read')
    const answers = [
      await interact(reader, 'subscribe', post),
      await interact(reader, 'mute', post),
      await interact(reader, 'hide', post, { hide: true }),
      await interact(reader, 'vote', api.bobPoll, { poll_answer: 1 }),
    ]
    for (const answer of answers) expectError(answer, 403)
  })

  it('works for a private post that the reader receives', async () => {
    const client = await alice.with('interactions', 'private:read')

    for (const verb of ['subscribe', 'mute'])
      expect((await interact(client, verb, api.bobFriendsPost)).status).toBe(204)
  })

  it('a person who has liked, commented or reshared is subscribed already', async () => {
    await alice.post(`/posts/${post}/likes`)
    expectError(await interact(alice, 'subscribe', post), 409)

    const { guid: comment } = await createComment(api.pod, bob.viewer, { postGuid: api.alicePost, text: 'Hello' })
    await carol.post(`/posts/${api.alicePost}/comments/${comment}/likes`)
    expectError(await interact(carol, 'subscribe', api.alicePost), 409)

    await comments(carol, post)
    expectError(await interact(carol, 'subscribe', post), 409)

    await api.dan.post(`/posts/${post}/reshares`)
    expectError(await interact(api.dan, 'subscribe', post), 409)
  })

  it('authors who subscribe to their own post stay subscribed after comments and retractions', async () => {
    await interact(bob, 'subscribe', post)
    const { body: comment } = await bob.post(`/posts/${post}/comments`, { body: 'So it is' })
    await bob.post(`/posts/${post}/likes`)

    await bob.delete(`/posts/${post}/comments/${comment.guid}`)
    await bob.delete(`/posts/${post}/likes`)

    expect(await stateOf(post, bob, bob)).toMatchObject({ subscribed: true })
  })

  it('muting ends a subscription, and is refused without one', async () => {
    expectError(await interact(alice, 'mute', post), 410)
    await interact(alice, 'subscribe', post)

    const answer = await interact(alice, 'mute', post)

    expect([answer.status, answer.text]).toEqual([204, ''])
    expect(await stateOf(post)).toMatchObject({ subscribed: false })
    expectError(await interact(alice, 'mute', post), 410)
  })

  it('muting ends the subscription by all interactions', async () => {
    await comments(alice, post)
    await comments(alice, post)
    await alice.post(`/posts/${post}/likes`)

    expect((await interact(alice, 'mute', post)).status).toBe(204)
    expect(await stateOf(post)).toMatchObject({ subscribed: false })
  })

  it('a subscriber is notified of a comment', async () => {
    await interact(alice, 'subscribe', post)

    await comments(carol, post)

    expect(await newsOf(alice)).toEqual([['also_commented', post, carol.guid]])
  })

  it('a person who has muted the post is not notified', async () => {
    await interact(alice, 'subscribe', post)
    await interact(alice, 'mute', post)

    await comments(carol, post)

    expect(await newsOf(alice)).toEqual([])
  })

  it('one’s own post can be muted, for every kind of notification', async () => {
    await interact(alice, 'subscribe', ownPost)
    await interact(alice, 'mute', ownPost)

    await comments(bob, ownPost, `Listen, @{${alice.address}}!`)
    await bob.post(`/posts/${ownPost}/likes`)
    await bob.post(`/posts/${ownPost}/reshares`)

    expect(await newsOf(alice)).toEqual([])
    await interact(alice, 'subscribe', ownPost)
    await comments(carol, ownPost)
    expect(await newsOf(alice)).toEqual([['commented_on_post', ownPost, carol.guid]])
  })

  it('an own comment ends the mute', async () => {
    await interact(alice, 'subscribe', post)
    await interact(alice, 'mute', post)
    await comments(carol, post)

    await comments(alice, post)

    expect(await stateOf(post)).toMatchObject({ subscribed: true })
    expect(await newsOf(alice)).toEqual([])
    await comments(carol, post)
    expect(await newsOf(alice)).toEqual([['also_commented', post, carol.guid]])
  })

  describe('hiding', () => {
    const hide = (value: unknown, guid = post) => interact(alice, 'hide', guid, { hide: value })

    it('happens once, and can be undone once', async () => {
      const answer = await hide(true)
      expect([answer.status, answer.text]).toEqual([204, ''])
      expectError(await hide(true), 409)

      expect((await hide(false)).status).toBe(204)
      expectError(await hide(false), 410)
      expect((await hide(true)).status).toBe(204)
    })

    it('requires `hide` as a boolean or an equivalent word', async () => {
      for (const body of [{}, { hide: 'maybe' }, { hide: null }, { hide: 1 }, { hide: [] }, '{', '[true]']) {
        const headers = { 'content-type': 'application/json' }
        const path = `/posts/${post}/hide`
        expectError(await api.call({ method: 'POST', path, token: alice.token, body, headers }), 422)
      }
      expectError(await hide('false'), 410)
      expect((await hide('TRUE')).status).toBe(204)
      expectError(await hide('on'), 409)
      expect((await hide('0')).status).toBe(204)
    })

    it('a hidden post stays readable by guid, and so do its comments', async () => {
      await comments(carol, post)
      await hide(true)

      expect(await stateOf(post)).toBeDefined()
      expect((await alice.get(`/posts/${post}/comments`)).body).toHaveLength(1)
    })

    it('suppresses notifications about comments, but not about mentions of the viewer', async () => {
      await interact(alice, 'subscribe', post)
      await hide(true)

      await comments(carol, post)
      expect(await newsOf(alice)).toEqual([])

      await comments(carol, post, `Listen, @{${alice.address}}!`)
      expect(await newsOf(alice)).toEqual([['mentioned_in_comment', post, carol.guid]])
    })
  })
})
