import { decodeJwt } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { codeIn, POD, pkce, postForm } from '../../support/http/oidc-client.js'
import { type ApiPerson, type ApiResponse, expectError } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

/** The requirements of a widely used client app (contract, section 10): typed objects, null only where the client expects it. */
let api: SampleApiPod
let alice: ApiPerson
let bob: ApiPerson
beforeAll(async () => {
  // It is written for the answers of diaspora*, where those differ.
  api = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })
  ;({ alice, bob } = api)
  await alice.post(`/posts/${api.bobPoll}/reshares`)
  await createComment(api.pod, bob.viewer, { postGuid: api.alicePost, text: `Hello @{${alice.address}}` })
  await bob.post(`/posts/${api.alicePost}/likes`)
})
afterAll(() => api.close())

type Fields = ApiResponse['body']

const postsOf = async (author: ApiPerson): Promise<Fields[]> =>
  (await alice.get(`/users/${author.guid}/posts?per_page=100`)).body
const talk = () => ({ subject: 'Tea', body: 'Shall we?', recipients: [bob.guid] })
/** All people in an answer, wherever they stand. */
function peopleIn(value: unknown): Fields[] {
  if (typeof value !== 'object' || value === null) return []
  const below = Object.values(value).flatMap(peopleIn)
  return Object.hasOwn(value, 'network_id') ? [value, ...below] : below
}

it('finds people by their diaspora ID in lower case', async () => {
  const answers = [
    await alice.get('/user'),
    await alice.get(`/users/${bob.guid}`),
    await alice.get(`/users/${alice.guid}/posts`),
    await alice.get(`/posts/${api.alicePost}`),
    await alice.get(`/posts/${api.alicePost}/comments`),
    await alice.get(`/posts/${api.alicePost}/likes`),
    await alice.get(`/posts/${api.bobPoll}/reshares`),
    await alice.post('/posts', { body: `Hello @{${bob.address}}`, public: true }),
    await alice.get('/notifications'),
    await alice.post('/conversations', talk()),
  ]

  for (const { body } of answers) {
    const people = peopleIn(body)
    expect(people.length).toBeGreaterThan(0)
    for (const person of people) expect(person.diaspora_id).toMatch(/^(alice|bob|carol)@pod\.example$/)
  }
  expect(answers[0]?.body.diaspora_id).toBe('alice@pod.example')
})

describe('reads as texts and booleans, never null,', () => {
  it('the guid of a person', async () => {
    for (const path of ['/user', `/users/${api.dan.guid}`])
      expect((await alice.get(path)).body.guid).toMatch(/^\w{16,}$/)
  })

  it('the body, the public flag and all four states of a post, also where a reshare has lost its root', async () => {
    const root = await publish(api, bob, { text: 'Soon gone', public: true })
    const { guid } = (await alice.post(`/posts/${root}/reshares`)).body
    await bob.delete(`/posts/${root}`)

    const posts = [
      ...(await postsOf(alice)),
      ...(await postsOf(bob)),
      (await alice.get(`/posts/${guid}`)).body,
      (await alice.post('/posts', { body: 'Hello', public: true })).body,
      (await alice.post(`/posts/${api.carolPoll}/reshares`)).body,
    ]

    expect(posts.find((post) => post.guid === guid)).toMatchObject({ body: '', public: true })
    for (const post of posts) {
      expect(post).toMatchObject({ body: expect.any(String), public: expect.any(Boolean) })
      const { liked, reshared, subscribed, reported } = post.own_interaction_state
      expect([liked, reshared, subscribed, reported].map((state) => typeof state)).toEqual(Array(4).fill('boolean'))
    }
  })

  it('the body of a comment, and whether it is reported, also of a new comment', async () => {
    const listed = (await alice.get(`/posts/${api.alicePost}/comments`)).body
    const written = (await alice.post(`/posts/${api.bobPost}/comments`, { body: 'Hello' })).body

    for (const comment of [...listed, written]) {
      expect(comment).toMatchObject({ body: expect.any(String), reported: expect.any(Boolean) })
    }
    expect(listed.length).toBeGreaterThan(0)
  })

  it('the subject of a conversation, and whether it is read, also of a new conversation', async () => {
    const begun = (await alice.post('/conversations', talk())).body
    const listed = (await alice.get('/conversations')).body
    const changed = (await alice.patch(`/conversations/${begun.guid}`, { read: false })).body

    for (const conversation of [...listed, begun, changed]) {
      expect(conversation).toMatchObject({ subject: expect.any(String), read: expect.any(Boolean) })
    }
  })

  it('whether a notification is read', async () => {
    const { body } = await alice.get('/notifications')

    expect(body.length).toBeGreaterThan(0)
    for (const notification of body) expect(notification.read).toBeTypeOf('boolean')
  })
})

it('knows these types of notifications and posts, and fails at any other', async () => {
  const known = [
    ...['also_commented', 'comment_on_post', 'contacts_birthday', 'liked', 'liked_comment', 'mentioned'],
    ...['mentioned_in_comment', 'reshared', 'started_sharing'],
  ]
  const { carol } = api
  await alice.post(`/posts/${api.bobPost}/likes`)
  const { guid: comment } = await createComment(api.pod, alice.viewer, { postGuid: api.bobPost, text: 'One' })
  await createComment(api.pod, carol.viewer, { postGuid: api.bobPost, text: 'Two' })
  await createComment(api.pod, carol.viewer, { postGuid: api.alicePost, text: 'Three' })
  await carol.post(`/posts/${api.bobPost}/comments/${comment}/likes`)
  await carol.post(`/posts/${api.alicePost}/reshares`)
  await carol.post('/posts', { body: `@{${alice.address}}`, public: true })

  const told: Fields[] = (await alice.get('/notifications?per_page=100')).body
  const posts = [...(await postsOf(alice)), ...(await postsOf(bob))]

  const types = new Set(told.map(({ type }) => type))
  expect([...types].sort()).toEqual(known.filter((type) => type !== 'contacts_birthday'))
  expect(new Set(posts.map(({ post_type }) => post_type))).toEqual(new Set(['StatusMessage', 'Reshare']))
})

describe('parses', () => {
  it('the root of a reshare as a complete post', async () => {
    const reshare = (await postsOf(alice)).find(({ root }) => root?.guid === api.bobPoll)
    const original = (await postsOf(bob)).find(({ guid }) => guid === api.bobPoll)

    expect(reshare.root).toEqual(original)
    expect((await alice.get(`/posts/${reshare.guid}`)).body).toEqual(reshare)
    expect(original.own_interaction_state.reshared).toBe(true)
  })

  it('four sizes of every avatar and photo', async () => {
    const post = (await api.pod.db('posts').where({ guid: api.bobPost }).first('id', 'authorId')) ?? {}
    await api.pod
      .db('photos')
      .insert({ guid: newGuid(), authorId: post.authorId, postId: post.id, name: 'a.jpg', public: true })

    const [photo] = (await alice.get(`/users/${bob.guid}/photos`)).body
    const listed = (await postsOf(bob)).find(({ guid }) => guid === api.bobPost).photos
    const own = (await alice.get('/user')).body.avatar
    const other = (await alice.get(`/users/${bob.guid}`)).body.avatar

    expect(listed).toHaveLength(1)
    for (const sizes of [own, other, photo.sizes, listed[0].sizes]) {
      expect(Object.keys(sizes).sort()).toEqual(['large', 'medium', 'raw', 'small'])
      for (const url of Object.values<string>(sizes)) expect(url).toMatch(/^https:\/\/pod\.example\//)
    }
  })
})

it('reads ids of aspects and poll answers as integers, and places as numbers with a decimal point', async () => {
  await publish(api, bob, { text: 'Here', public: true, location: { address: 'Here', lat: '48', lng: '9.25' } })

  const { body: person } = await alice.get(`/users/${bob.guid}`)
  const { text, body: posts } = await alice.get(`/users/${bob.guid}/posts?per_page=100`)

  expect(person.aspects.map(({ id }: Fields) => id)).toEqual([api.friendsAspectId])
  const { poll } = posts.find(({ guid }: Fields) => guid === api.bobPoll)
  for (const { id } of poll.poll_answers) expect(Number.isInteger(id)).toBe(true)
  expect(text).toContain('"lat":48.0,"lng":9.25')

  const written = await alice.post('/posts', {
    body: 'Here',
    public: true,
    location: { address: 'Here', lat: 48, lng: 9.25 },
    poll: { question: 'Tea?', poll_answers: ['yes', 'no'] },
  })
  expect(written.text).toContain('"lat":48.0,"lng":9.25')
  for (const { id } of written.body.poll.poll_answers) expect(Number.isInteger(id)).toBe(true)
})

it('reads links by their pattern, and uses their addresses as they are', async () => {
  const first = await alice.get(`/users/${bob.guid}/posts?per_page=1`)

  const links = /^<([^<>]+)>; rel="next", <([^<>]+)>; rel="previous"$/.exec(String(first.headers.link))
  expect(links?.slice(1)).toEqual([first.links.next, first.links.previous])
  for (const link of links?.slice(1) ?? []) {
    expect(link).toBe(new URL(link).href)
    expect((await alice.get(link)).status).toBe(200)
  }
  expect((await alice.get(first.links.next ?? '')).body).not.toEqual(first.body)
})

describe('ignores operations that are already done, and shows every other error message:', () => {
  let post: string
  let own: string
  beforeAll(async () => {
    post = await publish(api, bob, { text: 'Do something', public: true })
    own = await publish(api, alice, { text: 'Soon gone', public: true })
  })

  it.each<[string, number, () => Promise<ApiResponse>]>([
    ['subscribe', 409, () => alice.post(`/posts/${post}/subscribe`)],
    ['like', 409, () => alice.post(`/posts/${post}/likes`)],
    ['unlike', 410, () => alice.delete(`/posts/${post}/likes`)],
    ['reshare', 409, () => alice.post(`/posts/${post}/reshares`)],
    ['delete', 404, () => alice.delete(`/posts/${own}`)],
    ['mute', 410, () => alice.post(`/posts/${post}/mute`)],
    ['report', 409, () => alice.post(`/posts/${post}/report`, { reason: 'spam' })],
    ['hide', 409, () => alice.post(`/posts/${post}/hide`, { hide: true })],
    ['show again', 410, () => alice.post(`/posts/${post}/hide`, { hide: false })],
    ['block', 409, () => alice.post(`/users/${api.eve.guid}/block`)],
    ['unblock', 410, () => alice.delete(`/users/${api.eve.guid}/block`)],
  ])('%s again is a %i', async (_call, status, repeat) => {
    expect((await repeat()).status).toBeLessThan(300)
    expectError(await repeat(), status)
  })

  it('report of a comment again is a 409, its deletion again a 410', async () => {
    const { guid } = (await alice.post(`/posts/${post}/comments`, { body: 'Hello' })).body
    const path = `/posts/${post}/comments/${guid}`

    expect((await alice.post(`${path}/report`, { reason: 'spam' })).status).toBe(204)
    expectError(await alice.post(`${path}/report`, { reason: 'spam' }), 409)
    expect((await alice.delete(path)).status).toBe(204)
    expectError(await alice.delete(path), 410)
  })

  it('deletion of a conversation again is a 404', async () => {
    const { guid } = (await alice.post('/conversations', talk())).body

    expect((await alice.delete(`/conversations/${guid}`)).status).toBe(204)
    expectError(await alice.delete(`/conversations/${guid}`), 404)
  })

  it('a wrong value is answered with a readable message', async () => {
    const answer = await alice.post('/conversations', { ...talk(), recipients: [] })

    expectError(answer, 422)
    expect(answer.body.message).toBe("Couldn't accept or process the conversation")
  })
})

it('ends its session at a 401, and at nothing else', async () => {
  const limited = await alice.with('profile')
  const calls = [
    limited.get('/conversations'),
    limited.get('/notifications'),
    limited.patch('/user', { bio: 'x' }),
    limited.post(`/posts/${api.bobPost}/subscribe`),
    limited.post(`/users/${bob.guid}/block`),
    limited.get('/nonsense'),
  ]
  expect((await Promise.all(calls)).map(({ status }) => status)).toEqual([403, 403, 403, 403, 403, 404])

  expectError(await api.call({ path: '/user', token: 'gone' }), 401)
})

describe('sends', () => {
  it('a post with everything it has fields for, and nothing in most of them', async () => {
    const post = {
      body: 'Good morning',
      public: false,
      aspects: [api.friendsAspectId],
      photos: [],
      poll: null,
      location: null,
    }

    const answer = await alice.post('//posts', post)

    expect(answer).toMatchObject({ status: 200, body: { body: 'Good morning', public: false, photos: [] } })
    expect(answer.body).not.toHaveProperty('poll')
    expect(answer.body).not.toHaveProperty('location')
  })

  it.each(['1984-01-02T00:00:00.000', null])('the birthday as %j', async (birthday) => {
    const answer = await alice.patch('/user', { birthday })

    expect([answer.status, answer.body.birthday]).toEqual([200, birthday && '1984-01-02'])
  })

  it('tags as a JSON array', async () => {
    expect((await alice.patch('/user', { tags: ['#Cats', 'tea'] })).body.tags).toEqual(['cats', 'tea'])
  })
})

it('signs in with a scheme of its own, PKCE, a hint of who it is and fifteen scopes', async () => {
  const redirectUri = 'eu.jhass.insporation://callback'
  const discovered = await api.app.inject('/.well-known/openid-configuration')
  const registered = await api.app.inject({
    method: 'POST',
    url: pathOf(discovered.json().registration_endpoint),
    payload: { application_type: 'native', redirect_uris: [redirectUri], client_name: 'A phone' },
  })
  const { client_id, client_secret, client_secret_expires_at, token_endpoint_auth_method } = registered.json()
  expect([client_secret_expires_at, token_endpoint_auth_method]).toEqual([0, 'client_secret_post'])
  const { verifier, parameters } = pkce()
  const scopes = [
    ...['openid', 'nickname', 'profile', 'name', 'picture', 'profile:modify', 'contacts:read', 'contacts:modify'],
    ...[
      'conversations',
      'interactions',
      'notifications',
      'private:read',
      'private:modify',
      'public:modify',
      'tags:read',
    ],
  ]
  const request = {
    client_id,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: scopes.join(' '),
    state: 'a state',
    nonce: 'a nonce',
    prompt: 'login',
    login_hint: 'alice',
    ...parameters,
  }

  const browser = openBrowser(api.app, POD)
  await browser.visit(`${pathOf(discovered.json().authorization_endpoint)}?${new URLSearchParams(request)}`)
  await browser.submit({ username: 'alice', password: 'the password of alice' })
  await browser.submit({ approve: 'true' })
  const answer = await postForm(api.app, pathOf(discovered.json().token_endpoint), {
    grant_type: 'authorization_code',
    code: codeIn(browser.url),
    redirect_uri: redirectUri,
    client_id,
    client_secret,
    code_verifier: verifier,
  })

  expect(browser.url.searchParams.get('state')).toBe('a state')
  const { id_token, access_token, refresh_token, token_type, scope } = answer.json()
  const now = Date.now() / 1_000
  const { iss, aud, nonce, sub, iat = 0, exp = 0 } = decodeJwt(id_token)
  expect({ iss, aud, nonce, sub }).toEqual({
    iss: discovered.json().issuer,
    aud: client_id,
    nonce: 'a nonce',
    sub: 'alice@pod.example',
  })
  expect(Math.abs(now - iat)).toBeLessThan(600)
  expect(exp).toBeGreaterThan(now)
  expect([token_type.toLowerCase(), typeof refresh_token]).toEqual(['bearer', 'string'])
  expect(scope.split(' ')).toEqual(expect.arrayContaining(scopes))
  expect((await api.call({ path: '/notifications?only_unread=true&per_page=20', token: access_token })).status).toBe(
    200,
  )
})

it('finds in the newest NodeInfo it knows a version that is not below 0.9.0', async () => {
  const { links } = (await api.app.inject('/.well-known/nodeinfo')).json()
  const known = links
    .map(({ rel, href }: Fields) => ({
      schema: /^http:\/\/nodeinfo\.diaspora\.software\/ns\/schema\/(\d+)\.(\d+)$/.exec(rel)?.slice(1).map(Number),
      href,
    }))
    .filter(({ schema }: Fields) => schema !== undefined)
    .toSorted((one: Fields, other: Fields) => inOrder(other.schema, one.schema))

  const { software, protocols } = (await api.app.inject(pathOf(known[0].href))).json()

  expect(protocols.inbound ?? protocols).toContain('diaspora')
  const numbers = software.version.split('.').map((part: string) => Number.parseInt(part, 10))
  expect(numbers.length).toBeGreaterThanOrEqual(3)
  expect(inOrder(numbers, [0, 9, 0])).toBeGreaterThanOrEqual(0)
})

function pathOf(address: string): string {
  const { origin, pathname } = new URL(address)
  expect(origin).toBe(POD)
  return pathname
}

/** Part by part, as versions are compared. */
function inOrder(one: readonly number[], other: readonly number[]): number {
  const [difference = 0] = one.map((part, index) => part - (other[index] ?? 0)).filter((part) => part !== 0)
  return difference
}
