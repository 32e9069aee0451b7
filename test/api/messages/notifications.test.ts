import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { notifyOfBirthdays } from '../../../src/domain/notifications/birthdays.js'
import { blockForUser } from '../../../src/domain/people/blocks.js'
import { NOTIFICATION_TYPES } from '../../../src/persistence/models/notification.js'
import { openClock } from '../../support/assertions/clock.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

/** The local users, by guid. */
const names = new Map<string, string>()
const clock = openClock()
let api: SampleApiPod
let alice: ApiPerson
let bob: ApiPerson
let carol: ApiPerson
let dan: ApiPerson
interface Told {
  readonly guid: string
  readonly type: string
  readonly read: boolean
  readonly created_at: string
  readonly target?: { readonly guid: string; readonly author: { readonly guid: string } }
  readonly event_creators: readonly { readonly guid: string }[]
}

describe.each(queueBackends)('with the queue in $store', (backend) => {
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend, change: (pod) => ({ ...pod, now: clock.now }) })
    ;({ alice, bob, carol, dan } = api)
    for (const name of ['alice', 'bob', 'carol', 'dan', 'eve'] as const) names.set(api[name].guid, name)
  })
  afterAll(() => api.close())

  const says = (who: ApiPerson, postGuid: string, text = 'Well said') =>
    createComment(api.pod, who.viewer, { postGuid, text })
  const likes = (who: ApiPerson, postGuid: string, commentGuid?: string) =>
    who.post(`/posts/${postGuid}${commentGuid === undefined ? '' : `/comments/${commentGuid}`}/likes`)

  async function list(person: ApiPerson, query = ''): Promise<readonly Told[]> {
    const answer = await person.get(`/notifications?per_page=100${query}`)
    expect(answer.status).toBe(200)
    return answer.body
  }

  /** A user's notifications about a post, the newest first. */
  async function listNotificationsAbout(person: ApiPerson, postGuid: string): Promise<readonly Told[]> {
    return (await list(person)).filter(({ target }) => target?.guid === postGuid)
  }

  /** Type and who did it. */
  function summaryOf(told: readonly Told[]): readonly (readonly string[])[] {
    return told.map(({ type, event_creators }) => [type, ...event_creators.map(({ guid }) => names.get(guid) ?? guid)])
  }

  /** The only notification of a user about the post. */
  async function onlyOne(person: ApiPerson, postGuid: string): Promise<Told> {
    const told = await listNotificationsAbout(person, postGuid)
    const [one] = told
    if (one === undefined || told.length > 1) throw new Error(`There are ${told.length}.`)
    return one
  }

  const morning = (author: ApiPerson) => publish(api, author, { text: 'Good morning', public: true })

  describe('comments', () => {
    it('notify the author of the post', async () => {
      await says(bob, api.alicePost)

      const [told] = await listNotificationsAbout(alice, api.alicePost)

      expect(Object.keys(told ?? {}).sort()).toEqual(['created_at', 'event_creators', 'guid', 'read', 'target', 'type'])
      expect(told).toMatchObject({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        type: 'commented_on_post',
        read: false,
        target: { guid: api.alicePost, author: { guid: alice.guid, network_id: 'alice@pod.example' } },
        event_creators: [{ guid: bob.guid, network_id: 'bob@pod.example' }],
      })
      expect(Object.keys(told?.target ?? {}).sort()).toEqual(['author', 'guid'])
    })

    it('extend the unread notification, each person once', async () => {
      const post = await morning(alice)
      await says(bob, post)
      const first = await onlyOne(alice, post)
      const between = clock.later()
      clock.later()

      await says(carol, post)

      const merged = await onlyOne(alice, post)
      expect(merged).toMatchObject({ guid: first.guid, created_at: first.created_at })
      expect(summaryOf([merged])).toEqual([['commented_on_post', 'bob', 'carol']])
      expect((await list(alice, `&only_after=${between}`)).map(({ guid }) => guid)).toEqual([first.guid])

      await says(bob, post)
      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([['commented_on_post', 'bob', 'carol']])
    })

    it('create a new notification after the first one was read', async () => {
      const post = await morning(alice)
      await says(bob, post)
      const { guid } = await onlyOne(alice, post)
      await alice.patch(`/notifications/${guid}`, { read: true })
      clock.later()

      await says(carol, post)

      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([
        ['commented_on_post', 'carol'],
        ['commented_on_post', 'bob'],
      ])
    })

    it('notify earlier commenters', async () => {
      const post = await morning(alice)
      await says(bob, post)
      await says(carol, post)

      expect(summaryOf(await listNotificationsAbout(bob, post))).toEqual([['also_commented', 'carol']])
      expect(await listNotificationsAbout(carol, post)).toEqual([])
    })

    it('do not notify the person who acts', async () => {
      const post = await morning(alice)

      await says(alice, post)

      expect(await listNotificationsAbout(alice, post)).toEqual([])
    })
  })

  describe('likes and reshares', () => {
    it('notify the author of the post', async () => {
      const post = await morning(alice)

      await likes(bob, post)

      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([['liked', 'bob']])
    })

    it('notify the author of the comment, with its post', async () => {
      const post = await morning(bob)
      const { guid } = await says(alice, post)

      await likes(bob, post, guid)

      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([['liked_comment', 'bob']])
    })

    it('notify the author of the root', async () => {
      const post = await morning(alice)

      await bob.post(`/posts/${post}/reshares`)

      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([['reshared', 'bob']])
    })
  })

  describe('mentions', () => {
    it('in a post notify about that post', async () => {
      const { guid } = (await bob.post('/posts', { body: 'Look, @{alice@pod.example}', public: true })).body

      expect(summaryOf(await listNotificationsAbout(alice, guid))).toEqual([['mentioned', 'bob']])
      expect((await onlyOne(alice, guid)).target?.author.guid).toBe(bob.guid)
    })

    it('in a comment notify as a mention, and not as a comment', async () => {
      const post = await morning(alice)

      await says(bob, post, 'Is it, @{alice@pod.example}?')

      expect(summaryOf(await listNotificationsAbout(alice, post))).toEqual([['mentioned_in_comment', 'bob']])
    })

    it('in a comment on a private post notify only people who may see it', async () => {
      const before = await list(dan)

      await says(bob, api.bobFriendsPost, 'Is it, @{dan@pod.example}?')

      expect(await list(dan)).toEqual(before)
    })
  })

  describe('people', () => {
    it('a new contact causes one notification without a target', async () => {
      await share(api, dan, alice)

      const told = await list(alice, '&type=started_sharing')
      expect(summaryOf(told.slice(0, 1))).toEqual([['started_sharing', 'dan']])
      expect(told[0]).not.toHaveProperty('target')

      await share(api, dan, alice, 'Work')
      expect(await list(alice, '&type=started_sharing')).toEqual(told)
    })

    it('the birthday of a mutual contact causes one notification, for any number of requests', async () => {
      await bob.editProfile({ birthday: '1004-03-01' })
      await carol.editProfile({ birthday: '1990-03-01' })

      await notifyOfBirthdays(api.pod, '2026-03-01')
      await notifyOfBirthdays(api.pod, '2026-03-01')

      const told = await list(alice, '&type=contacts_birthday')
      expect(summaryOf(told)).toEqual([['contacts_birthday', 'bob']])
      expect(told[0]).not.toHaveProperty('target')
    })
  })

  describe('GET /notifications', () => {
    it('lists one type only on request', async () => {
      const post = await morning(alice)
      await says(bob, post)
      await likes(bob, post)

      const told = await list(alice, '&type=liked')

      expect(new Set(told.map(({ type }) => type))).toEqual(new Set(['liked']))
      expect(told.map(({ target }) => target?.guid)).toContain(post)
    })

    it('accepts every type', async () => {
      for (const type of NOTIFICATION_TYPES) {
        expect((await list(alice, `&type=${type}`)).every((told) => told.type === type)).toBe(true)
      }
    })

    it('accepts both names of a comment on an own post', async () => {
      await says(bob, await morning(alice))

      const told = await list(alice, '&type=commented_on_post')

      expect(told.length).toBeGreaterThan(0)
      expect(await list(alice, '&type=comment_on_post')).toEqual(told)
    })

    it.each([
      'type=foo',
      'type=liked&type=mentioned',
      'only_unread=perhaps',
      'only_after=tomorrow',
      'after=x',
      'per_page=',
    ])('is a 422 for a query of %s', async (query) => {
      expectError(await alice.get(`/notifications?${query}`), 422)
    })

    it('lists only unread ones on request', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)
      const unread = async (value: string) =>
        (await list(alice, `&only_unread=${value}`)).map((told) => told.guid).includes(guid)
      expect(await unread('true')).toBe(true)

      await alice.patch(`/notifications/${guid}`, { read: true })

      expect([await unread('true'), await unread('1'), await unread('false')]).toEqual([false, false, true])
      expect((await list(alice, '&only_unread=true')).every(({ read }) => !read)).toBe(true)
    })

    it('is empty after a time in the future', async () => {
      expect(await list(alice, '&only_after=2100-01-01T00:00:00Z')).toEqual([])
    })

    it('a time filter includes notifications that were only extended later', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const between = clock.later()
      const then = clock.later()

      await likes(carol, post)

      expect((await list(alice, `&only_after=${between}`)).map(({ target }) => target?.guid)).toEqual([post])
      expect(await list(alice, `&only_after=${then}`)).toEqual([])
    })

    it('a notification that was only marked as read is not listed again', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)
      const since = clock.later()
      clock.later()

      await alice.patch(`/notifications/${guid}`, { read: true })
      await alice.patch(`/notifications/${guid}`, { read: false })

      expect(await list(alice, `&only_after=${since}`)).toEqual([])
    })

    it('lists the newest first, in pages without gaps or repetitions within a millisecond', async () => {
      const posts: string[] = []
      for (let index = 0; index < 7; index += 1) {
        if (index % 3 === 0) clock.later()
        const post = await morning(api.eve)
        await likes(dan, post)
        posts.unshift(post)
      }

      const pages: Told[] = await readAllPages(api.eve, '/notifications?per_page=2&type=liked')

      expect(pages.map(({ target }) => target?.guid)).toEqual(posts)
    })

    it('links to newer notifications', async () => {
      const first = await api.eve.get('/notifications?per_page=1&only_unread=true')
      clock.later()
      const post = await morning(api.eve)
      await likes(dan, post)

      const newer = await api.eve.get(first.links.previous ?? '')

      expect(newer.body.map(({ target }: Told) => target?.guid)).toEqual([post])
      expect(newer.links.next).toBeUndefined()
    })

    it('the list costs three statements, for any number of notifications', async () => {
      const ask = (query: string) => statementsDuring(() => alice.get(`/notifications?${query}`))

      expect(await ask('per_page=1')).toBe(3)
      expect(await ask('per_page=100&only_unread=true&only_after=2020-01-01&type=liked')).toBe(3)
    })
  })

  describe('GET /notifications/:notification_id', () => {
    it('marks the notification as read', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const before = await onlyOne(alice, post)
      expect(before.read).toBe(false)

      const url = `/api/v1/notifications/${before.guid}`
      const head = await api.app.inject({ method: 'HEAD', url, headers: { authorization: `Bearer ${alice.token}` } })
      expect(head.statusCode).toBe(200)
      const unread = await api.pod.db('notifications').where({ guid: before.guid }).first('read')
      expect(unread).toEqual({ read: false })

      const answer = await alice.get(`/notifications/${before.guid}`)

      expect(answer.status).toBe(200)
      expect(answer.body).toEqual({ ...before, read: true })
      expect(await onlyOne(alice, post)).toEqual(answer.body)
    })

    it('a notification costs four statements', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)

      expect(await statementsDuring(() => alice.get(`/notifications/${guid}`))).toBe(4)
    })
  })

  describe('PATCH /notifications/:notification_id', () => {
    it('returns the changed notification', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const before = await onlyOne(alice, post)

      const read = await alice.patch(`/notifications/${before.guid}`, { read: true })
      const unread = await alice.patch(`/notifications/${before.guid}`, { read: false })

      expect([read.status, read.body]).toEqual([200, { ...before, read: true }])
      expect([unread.status, unread.body]).toEqual([200, before])
      expect(await onlyOne(alice, post)).toEqual(before)
    })

    it('later events extend the unread notification when a later one is read', async () => {
      const post = await morning(alice)
      await says(bob, post)
      const first = await onlyOne(alice, post)
      await alice.get(`/notifications/${first.guid}`)
      await says(bob, post)
      const [second] = await listNotificationsAbout(alice, post)
      await alice.patch(`/notifications/${first.guid}`, { read: false })
      await alice.get(`/notifications/${second?.guid}`)

      await says(carol, post)

      const told = await listNotificationsAbout(alice, post)
      expect(told.map(({ guid, read }) => [guid, read])).toEqual([
        [second?.guid, true],
        [first.guid, false],
      ])
      expect(summaryOf(told)[1]).toEqual(['commented_on_post', 'bob', 'carol'])
    })

    it('an action by a blocked person leaves the unread notification in use for later actions', async () => {
      const post = await morning(alice)
      await says(carol, post)
      const first = await onlyOne(alice, post)
      await alice.get(`/notifications/${first.guid}`)
      await says(dan, post)
      await alice.patch(`/notifications/${first.guid}`, { read: false })

      await alice.post(`/users/${dan.guid}/block`)
      await says(bob, post)
      await alice.delete(`/users/${dan.guid}/block`)

      const unread = (await listNotificationsAbout(alice, post)).filter(({ read }) => !read)
      expect(summaryOf(unread)).toEqual([['commented_on_post', 'carol', 'bob']])
    })

    it('is also accepted as PUT', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)

      expect((await alice.put(`/notifications/${guid}`, { read: 'on' })).body).toMatchObject({ guid, read: true })
    })

    it.each([{}, { read: 'x' }, { read: null }, { read: 1 }])('is a 422 for %j', async (body) => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)

      expectError(await alice.patch(`/notifications/${guid}`, body), 422)

      expect((await onlyOne(alice, post)).read).toBe(false)
    })
  })

  describe('an unknown notification', () => {
    it('a notification of another user is a 404', async () => {
      const post = await morning(bob)
      await likes(alice, post)
      const { guid } = await onlyOne(bob, post)

      expectError(await alice.get(`/notifications/${guid}`), 404)
      expectError(await alice.patch(`/notifications/${guid}`, { read: true }), 404)

      expect((await onlyOne(bob, post)).read).toBe(false)
    })

    it('is a 404 before any other error of the request', async () => {
      expectError(await alice.get(`/notifications/${newGuid()}`), 404)
      expectError(await alice.get('/notifications/5'), 404)
      expectError(await alice.patch(`/notifications/${newGuid()}`, { read: true }), 404)
      expectError(await alice.patch(`/notifications/${newGuid()}`, { read: 'x' }), 404)
    })

    it('a token without the scope is rejected', async () => {
      const limited = await alice.with('conversations', 'private:read')
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)

      expectError(await limited.get('/notifications'), 403)
      expectError(await limited.get(`/notifications/${guid}`), 403)
      expectError(await limited.patch(`/notifications/${guid}`, { read: true }), 403)

      expect((await onlyOne(alice, post)).read).toBe(false)
    })

    it('is a notification about a deleted post', async () => {
      const post = await morning(alice)
      await likes(bob, post)
      const { guid } = await onlyOne(alice, post)

      await alice.delete(`/posts/${post}`)

      expect(await listNotificationsAbout(alice, post)).toEqual([])
      expectError(await alice.get(`/notifications/${guid}`), 404)
    })
  })

  it('are marked as read when their only person is blocked', async () => {
    const [alone, both] = [await morning(alice), await morning(alice)]
    await likes(api.eve, alone)
    await likes(api.eve, both)
    await likes(carol, both)

    await blockForUser(api.pod, alice.viewer, api.eve.guid)

    expect((await onlyOne(alice, alone)).read).toBe(true)
    expect((await onlyOne(alice, both)).read).toBe(false)
  })
})

it('a comment on an own post has the other notification type with CLIENT_API_DIALECT=diaspora, and both types find it', async () => {
  await using other = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })
  await createComment(other.pod, other.bob.viewer, { postGuid: other.alicePost, text: 'Well said' })
  await other.bob.post(`/posts/${other.alicePost}/likes`)

  const typesOf = async (query: string) =>
    (await other.alice.get(`/notifications${query}`)).body.map(({ type }: Told) => type)

  expect((await typesOf('')).toSorted()).toEqual(['comment_on_post', 'liked', 'started_sharing', 'started_sharing'])
  expect(await typesOf('?type=comment_on_post')).toEqual(['comment_on_post'])
  expect(await typesOf('?type=commented_on_post')).toEqual(['comment_on_post'])
})
