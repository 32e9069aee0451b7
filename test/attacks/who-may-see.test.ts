import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { SCOPES, type Scope } from '../../src/domain/accounts/scopes.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { Photo } from '../../src/persistence/models/photo.js'
import { register } from '../support/http/oidc-client.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import type { ApiPerson } from '../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../support/pods/sample-api-pod.js'
import { type ApiOperation, readOperations, TELLING, tryCall } from './api-operations.js'

let api: SampleApiPod
let operations: readonly ApiOperation[]
/** Things of Alice and Bob that Eve must not see, by the parameter that names them. */
let foreign: Readonly<Record<string, string | number>>
let photo: Photo
beforeAll(async () => {
  operations = await readOperations()
  api = await startSampleApiPod({ environment: { DATABASE_POOL: '12' } })
  const { pod, alice, bob, bobFriendsPost } = api
  const comment = await createComment(pod, bob.viewer, { postGuid: bobFriendsPost, text: 'Between us' })
  const { body: conversation } = await alice.post('/conversations', {
    subject: 'Secret',
    body: 'Between us',
    recipients: [bob.guid],
  })
  await createComment(pod, bob.viewer, { postGuid: api.alicePost, text: 'Well said' })
  const notification = await pod.db('notifications').where({ userId: alice.viewer.userId }).first('id', 'guid')
  photo = await Photo.query(pod.db)
    .insert({ guid: newGuid(), authorId: bob.viewer.personId, public: false, pending: false, name: 'secret.jpg' })
    .returning('*')
  foreign = {
    post_guid: bobFriendsPost,
    comment_guid: comment.guid,
    guid: conversation.guid,
    notification_id: notification.guid ?? notification.id,
    id: api.friendsAspectId,
    aspect_id: api.friendsAspectId,
    photo_guid: photo.guid,
  }
})
afterAll(() => api.close())

/** A body with every field that any call accepts. */
function fullBody() {
  return {
    body: 'x',
    reason: 'x',
    hide: true,
    poll_answer: 1,
    name: newGuid(),
    read: true,
    order: 1,
    subject: 'x',
    person_guid: api.alice.guid,
    person: api.alice.guid,
  }
}

const nothing: Readonly<Record<string, string | number>> = {
  post_guid: newGuid(),
  comment_guid: newGuid(),
  guid: newGuid(),
  notification_id: 2_000_000_000,
  id: 2_000_000_000,
  aspect_id: 2_000_000_000,
  photo_guid: newGuid(),
}

/** Calls about an entity of a user; people are visible to all users. */
const aboutThings = () =>
  operations.filter(({ pathParameters }) => pathParameters.some((name) => Object.hasOwn(nothing, name)))

async function outcome(operation: ApiOperation, token: string, parameters: Readonly<Record<string, string | number>>) {
  const all = { person_guid: api.alice.guid, name: 'x', ...parameters }
  const answer = await tryCall(api.app, operation, { token, parameters: all, body: fullBody() })
  return [`${operation.method} ${operation.path}`, answer.statusCode, answer.body] as const
}

async function stateOfThings() {
  const tables = [
    'posts',
    'comments',
    'likes',
    'conversations',
    'messages',
    'notifications',
    'aspects',
    'photos',
    'reports',
  ]
  const state = await Promise.all(tables.map((table) => api.pod.db(table).orderBy('id')))
  return JSON.stringify([state, await api.pod.db('aspectMemberships').orderBy('contactId')])
}

it('S60: entities of other users are answered as missing in every call, and stay unchanged', async () => {
  const before = await stateOfThings()
  const calls = aboutThings()
  expect(calls.length).toBeGreaterThan(25)

  for (const operation of calls) {
    const theirs = await outcome(operation, api.eve.token, foreign)
    const missing = await outcome(operation, api.eve.token, nothing)
    expect(theirs).toEqual(missing)
    expect(theirs[1]).toBeGreaterThanOrEqual(400)
    expect(theirs[1]).toBeLessThan(500)
  }
  expect(await stateOfThings()).toBe(before)
})

it('S60: lists do not contain it either, nor do pages without a sign-in', async () => {
  const lists = operations.filter(({ method, pathParameters }) => method === 'GET' && pathParameters.length === 0)
  for (const operation of lists) {
    const { body } = await tryCall(api.app, operation, { token: api.eve.token })
    expect([operation.path, /Between us|Secret|secret\.jpg/.test(body)]).toEqual([operation.path, false])
  }
  for (const path of [
    `/posts/${api.bobFriendsPost}`,
    `/people/${api.bob.guid}`,
    `/fetch/post/${api.bobFriendsPost}`,
    `/api/v1/users/${api.bob.guid}/posts`,
  ]) {
    const { body } = await api.app.inject({ url: path, headers: { authorization: `Bearer ${api.eve.token}` } })
    expect([path, /\bRB\b|\bXB\b|Between us/.test(body)]).toEqual([path, false])
  }
})

describe('S61: a path to', () => {
  it.each<[string, ApiOperation['method'], object | undefined]>([
    ['/comments/:comment/report', 'POST', { reason: 'x' }],
    ['/comments/:comment', 'DELETE', undefined],
    ['/comments/:comment/likes', 'GET', undefined],
    ['/comments/:comment/likes', 'POST', {}],
  ])('a comment under another post leads nowhere: %s by %s', async (path, method, body) => {
    const { guid } = await createComment(api.pod, api.alice.viewer, { postGuid: api.bobPost, text: 'Under bobPost' })
    const call = async (comment: string) => {
      const url = `/api/v1/posts/${api.alicePost}${path.replace(':comment', comment)}`
      const answer = await api.app.inject({
        method,
        url,
        headers: { authorization: `Bearer ${api.alice.token}` },
        ...(body && { payload: body }),
      })
      return [answer.statusCode, answer.body]
    }
    const before = await api.pod.db('comments').count()

    expect(await call(guid)).toEqual(await call(newGuid()))
    expect(await api.pod.db('comments').count()).toEqual(before)
  })

  it('an answer of another poll counts nowhere', async () => {
    const posts = await api.alice.get(`/users/${api.carol.guid}/posts`)
    const { poll } = posts.body.find(({ guid }: { readonly guid: string }) => guid === api.carolPoll)

    const answer = await api.alice.post(`/posts/${api.bobPoll}/vote`, { poll_answer: poll.poll_answers[0].id })

    expect(answer.status).toBe(422)
    expect(await api.pod.db('pollParticipations').count()).toEqual([{ count: 0 }])
  })
})

describe('S62: a call', () => {
  it('without one of its scopes gets 403, without a token 401, and reads and changes nothing', async () => {
    const before = await stateOfThings()
    const routes = api.app.knownRoutes.filter(({ url, config }) => url.startsWith('/api/v1/') && config?.scopes)
    // The admin API asks for a role and has a matrix of its own.
    const ofClients = operations.filter(({ path }) => path.startsWith('/api/v1/'))
    expect(routes.length).toBeGreaterThan(ofClients.length)
    for (const { method, url, config } of routes) {
      for (const verb of [method].flat()) {
        const path = url.replace(/:(\w+)/g, (_all, name: string) => String(foreign[name] ?? api.alice.guid))
        const call = (token?: string) =>
          api.app.inject({
            method: verb as 'GET',
            url: path,
            ...(token && { headers: { authorization: `Bearer ${token}` } }),
          })
        expect([verb, url, (await call()).statusCode]).toEqual([verb, url, 401])
        expect([verb, url, (await call('f'.repeat(64))).statusCode]).toEqual([verb, url, 401])
        // Every token has only the one scope that no call requires.
        for (const missing of (config?.scopes ?? []).filter((scope) => scope !== 'public:read')) {
          const client = await clientWithout(missing)
          expect([verb, url, (await call(client)).statusCode]).toEqual([verb, url, 403])
        }
      }
    }
    expect(await stateOfThings()).toBe(before)
  })

  it('needs private:read for private entities, regardless of its other scopes', async () => {
    const token = await clientWithout('private:read')

    for (const operation of aboutThings().filter(({ pathParameters }) => pathParameters.includes('post_guid'))) {
      const theirs = await outcome(operation, token, foreign)
      expect(theirs).toEqual(await outcome(operation, token, nothing))
    }
  })

  const known = new Map<Scope, Promise<string>>()
  /** Of Alice, who may see all that is foreign to Eve but the photo. */
  async function clientWithout(scope: Scope): Promise<string> {
    const client =
      known.get(scope) ?? api.alice.with(...SCOPES.filter((one) => one !== scope)).then(({ token }) => token)
    known.set(scope, client)
    return client
  }
})

describe('S63: of twenty at once', () => {
  const counted: readonly (readonly [string, (person: ApiPerson) => Promise<readonly [string, object?]>])[] = [
    ['block', async () => [`/users/${api.dan.guid}/block`]],
    ['subscribe', async () => [`/posts/${api.bobPost}/subscribe`]],
    ['report', async () => [`/posts/${api.bobPost}/report`, { reason: 'Why not' }]],
    ['hide', async () => [`/posts/${api.bobPost}/hide`, { hide: true }]],
    ['like', async () => [`/posts/${api.bobPost}/likes`]],
    ['reshare', async () => [`/posts/${api.bobPost}/reshares`]],
    [
      'vote',
      async (person) => {
        const { body } = await person.get(`/users/${api.bob.guid}/posts`)
        const { poll } = body.find(({ guid }: { readonly guid: string }) => guid === api.bobPoll)
        return [`/posts/${api.bobPoll}/vote`, { poll_answer: poll.poll_answers[0].id }]
      },
    ],
  ]

  it.each(counted)('%s succeeds once', async (_what, make) => {
    const [path, body] = await make(api.carol)

    const answers = await Promise.all(Array.from({ length: 20 }, () => api.carol.post(path, body ?? {})))

    const statuses = answers.map(({ status }) => status).toSorted()
    expect(statuses[0]).toBeLessThan(300)
    expect(statuses.slice(1).every((status) => [409, 410, 422].includes(status))).toBe(true)
  })
})

describe('S64: a conversation', () => {
  const start = (recipients: unknown) => api.alice.post('/conversations', { subject: 'x', body: 'x', recipients })

  it.each<[string, () => unknown]>([
    ['without recipients', () => []],
    ['with a person who shares nothing', () => [api.eve.guid]],
    ['with a person who shares without being shared with', () => [api.carol.guid]],
    ['with an unknown person', () => [newGuid()]],
    ['with a known and an unknown person', () => [api.bob.guid, newGuid()]],
    ['with the same person twice', () => [api.bob.guid, api.bob.guid]],
    ['with oneself alone', () => [api.alice.guid]],
    ['with a hundred and one', () => Array.from({ length: 101 }, () => newGuid())],
    ['with numbers', () => [1, 2]],
    ['with a text', () => api.bob.guid],
    ['with lists', () => [[api.bob.guid]]],
  ])('%s is not begun', async (_what, recipients) => {
    const before = await api.pod.db('conversations').count()

    const { status } = await start(recipients())

    expect([400, 404, 422]).toContain(status)
    expect(await api.pod.db('conversations').count()).toEqual(before)
  })
})

describe('S65: a client', () => {
  const attempt = (remoteAddress: string, forwarded: string) =>
    api.app.inject({
      method: 'POST',
      url: '/api/openid_connect/access_tokens',
      remoteAddress,
      headers: {
        'x-forwarded-for': forwarded,
        'x-real-ip': forwarded,
        forwarded: `for=${forwarded}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      payload: 'grant_type=authorization_code',
    })

  it('is identified by its address, regardless of headers', async () => {
    const statuses: number[] = []
    for (let turn = 0; turn < 122; turn += 1) {
      statuses.push((await attempt('203.0.113.5', `198.51.100.${turn}`)).statusCode)
    }

    expect(statuses.slice(0, 120)).not.toContain(429)
    expect(statuses.slice(120)).toEqual([429, 429])
  })

  it('with a complete network of IPv6 counts as one', async () => {
    const statuses: number[] = []
    for (let turn = 0; turn < 121; turn += 1) {
      statuses.push((await attempt(`2001:db8:1:2::${turn.toString(16)}`, '')).statusCode)
    }

    expect(statuses.at(-1)).toBe(429)
    expect((await attempt('2001:db8:1:3::1', '')).statusCode).not.toBe(429)
  })

  it('above the limit gets Retry-After', async () => {
    const late = await attempt('203.0.113.5', '')

    expect(Number(late.headers['retry-after'])).toBeGreaterThan(0)
  })
})

it('S66: an error explains how to correct the request, and reveals no internals', async () => {
  const wrong = [{}, { body: 5 }, { body: null }, { recipients: 'x' }, { read: 'x', hide: 'x', poll_answer: 'x' }]
  for (const operation of operations) {
    for (const body of wrong) {
      const answer = await tryCall(api.app, operation, {
        token: api.eve.token,
        parameters: foreign,
        query: 'before=x&page=x',
        body,
      })
      if (answer.statusCode < 400) continue
      expect([operation.path, answer.body]).toEqual([operation.path, expect.not.stringMatching(TELLING)])
      expect(answer.json()).toMatchObject({ code: answer.statusCode, message: expect.any(String) })
    }
  }
  for (const url of [
    '/nothing',
    '/posts/nothing',
    '/people/nothing',
    '/api/openid_connect/authorizations/nothing',
    '/fetch/a/b',
  ]) {
    const answer = await api.app.inject(url)
    expect([url, answer.body]).toEqual([url, expect.not.stringMatching(TELLING)])
  }
  expect((await register(api.app, { redirect_uris: 5 })).body).not.toMatch(TELLING)
})

describe('S67: private data', () => {
  it('a profile is shown to contacts the person shares with, and to no other person', async () => {
    const details = {
      bio: 'My secret bio',
      location: 'My secret place',
      gender: 'My secret self',
      birthday: '1984-02-29',
    }
    await api.bob.editProfile({ ...details, publicDetails: false })
    const telling = /My secret|1984-02-29/

    for (const path of [
      `/api/v1/users/${api.bob.guid}`,
      `/people/${api.bob.guid}`,
      `/hcard/users/${api.bob.guid}`,
      `/api/v1/users/${api.bob.guid}/posts`,
    ]) {
      const { body } = await api.app.inject({ url: path, headers: { authorization: `Bearer ${api.eve.token}` } })
      expect([path, telling.test(body)]).toEqual([path, false])
    }
    expect((await api.alice.get(`/users/${api.bob.guid}`)).text).toMatch(telling)
  })

  it('a person of another pod is no different', async () => {
    const zoe = await addRemotePerson(api.pod, 'zoe@z.example')
    await api.pod.db('profiles').where({ personId: zoe.id }).update({ bio: 'My secret bio', publicDetails: false })

    expect((await api.eve.get(`/users/${zoe.guid}`)).text).not.toContain('My secret')
  })

  it('an account: e-mail address and role are visible to the owner only', async () => {
    for (const person of [api.alice, api.eve]) {
      const { text } = await person.get(`/users/${api.bob.guid}`)
      expect(text).not.toMatch(/"(email|role|admin|locked|sign_in|last_seen)/)
    }
  })

  it('a picture is visible to the people who may see its post', async () => {
    const { body } = await api.app.inject({
      url: `/api/v1/users/${api.bob.guid}/photos`,
      headers: { authorization: `Bearer ${api.eve.token}` },
    })

    expect(body).not.toContain(photo.guid)
  })
})

it('S60: a hidden post is hidden for that user only', async () => {
  const guid = await publish(api, api.bob, { text: 'Seen by all', public: true })
  await api.dan.post(`/posts/${guid}/hide`, { hide: true })

  expect((await api.eve.get(`/users/${api.bob.guid}/posts`)).text).toContain(guid)
})
