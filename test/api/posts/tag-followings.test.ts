import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LIST_LIMITS } from '../../../src/domain/limits.js'
import { CONCURRENT_REQUESTS, countStatuses } from '../../support/assertions/concurrent-requests.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type ApiPerson, type ApiPod, expectError, startApiPod } from '../../support/pods/api-pod.js'
import { publish } from '../../support/pods/sample-api-pod.js'

let api: ApiPod
let alice: ApiPerson
let bob: ApiPerson
beforeAll(async () => {
  api = await startApiPod({ environment: { DATABASE_POOL: '20' } })
  ;({ alice, bob } = await api.people('alice', 'bob'))
})
afterAll(() => api.close())
beforeEach(async () => {
  await api.pod.db('tagFollowings').delete()
})

const follow = (name: unknown, who = alice) => who.post('/tag_followings', { name })
const unfollow = (name: string) => alice.delete(`/tag_followings/${encodeURIComponent(name)}`)
const listFollowed = async (who = alice) => (await who.get('/tag_followings')).body

describe('following a tag', () => {
  it('is done once, and each user follows their own', async () => {
    const answer = await follow('cats')

    expect([answer.status, answer.text]).toEqual([204, ''])
    expectError(await follow('cats'), 409)
    expect(await listFollowed()).toEqual(['cats'])
    expect(await listFollowed(bob)).toEqual([])
    expect((await follow('cats', bob)).status).toBe(204)
  })

  it('accepts a tag in each of its forms', async () => {
    expect((await follow('#CATS')).status).toBe(204)

    expect(await listFollowed()).toEqual(['cats'])
    for (const name of ['cats', 'Cats', '#cats', 'c a t s', 'cats!']) expectError(await follow(name), 409)
  })

  it('lists all of them in order', async () => {
    for (const name of ['tea', 'ärger', 'cats', '<3', '猫', '123', 'a_b-c', 'CAT']) {
      expect((await follow(name)).status).toBe(204)
    }

    expect(await listFollowed()).toEqual(['123', '<3', 'a_b-c', 'cat', 'cats', 'tea', 'ärger', '猫'])
    const many = Array.from({ length: 120 }, (_, number) => `tag${1_000 + number}`)
    for (const name of many) await follow(name)
    const answer = await alice.get('/tag_followings?per_page=5&page=2')
    expect(answer.body).toEqual(['123', '<3', 'a_b-c', 'cat', 'cats', ...many.sort(), 'tea', 'ärger', '猫'].sort())
    expect(answer.links).toEqual({})
  })

  it('needs a name', async () => {
    for (const name of ['', '#', '  ', '!?', '##', 'x'.repeat(256), '\0', 'a\udfff', 5, null, ['cats'], {}]) {
      expectError(await follow(name), 422)
    }
    for (const body of [{}, undefined, { tag: 'cats' }]) expectError(await alice.post('/tag_followings', body), 422)
    expect(await listFollowed()).toEqual([])
  })

  it('is refused beyond the limit of an account, which keeps what it follows', async () => {
    const { db } = api.pod
    await db.raw(`insert into tags (name) select 'many' || number from generate_series(1, ?::integer) as number`, [
      LIST_LIMITS.followedTags,
    ])
    await db.raw(`insert into tag_followings (user_id, tag_id) select ?, id from tags where name like 'many%'`, [
      alice.viewer.userId,
    ])
    expectError(await follow('more'), 422)
    expectError(await follow('many1'), 409)
    expect(await unfollow('many1')).toMatchObject({ status: 204 })
    expect((await follow('more')).status).toBe(204)
    expect(await listFollowed()).toHaveLength(LIST_LIMITS.followedTags)
  })

  it('accepts a form', async () => {
    const answer = await api.call({
      method: 'POST',
      path: '/tag_followings',
      token: alice.token,
      body: 'name=%23Cats',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })

    expect(answer.status).toBe(204)
    expect(await listFollowed()).toEqual(['cats'])
  })

  it('follows the existing tag of posts', async () => {
    await publish(api, bob, { text: 'All about #Rabbits', public: true })
    await follow('rabbits')

    expect(await api.pod.db('tags').where({ name: 'rabbits' })).toHaveLength(1)
  })
})

describe('following a tag no longer', () => {
  it('a second request is refused', async () => {
    await follow('cats')
    await follow('tea')

    const answer = await unfollow('cats')

    expect([answer.status, answer.text]).toEqual([204, ''])
    expectError(await unfollow('cats'), 410)
    expect(await listFollowed()).toEqual(['tea'])
  })

  it('takes a tag in any of its forms, percent-encoded', async () => {
    for (const [name, said] of [
      ['cats', '#CATS'],
      ['öl', 'ÖL'],
      ['<3', '<3'],
      ['猫', '#猫'],
      ['x'.repeat(255), 'X'.repeat(255)],
      ['𐐨'.repeat(255), '𐐀'.repeat(255)],
    ] as const) {
      expect((await follow(name)).status).toBe(204)
      expect((await unfollow(said)).status).toBe(204)
    }
    expect(await listFollowed()).toEqual([])
  })

  it('an invalid tag is rejected', async () => {
    for (const name of ['dogs', '#', ' ', '!', '%', '..%2f']) expectError(await unfollow(name), 410)
    expectError(await alice.delete('/tag_followings/%00'), 404)
    expectError(await alice.delete('/tag_followings'), 404)
  })
})

describe('many times at once', () => {
  it('a tag is followed once and unfollowed once', async () => {
    const name = 'never seen before'

    expect(await countStatuses(() => follow(name))).toEqual({ 204: 1, 409: CONCURRENT_REQUESTS - 1 })
    expect(await listFollowed()).toEqual(['neverseenbefore'])
    expect(await countStatuses(() => unfollow(name))).toEqual({ 204: 1, 410: CONCURRENT_REQUESTS - 1 })
  })

  it('concurrent requests for a new tag all follow it', async () => {
    const statuses = await countStatuses((number) => follow(`brand new ${number >> 1}`, number % 2 === 0 ? alice : bob))

    expect(statuses).toEqual({ 204: CONCURRENT_REQUESTS })
    expect(await listFollowed()).toEqual(await listFollowed(bob))
  })
})

it('takes two statements to read, and three to write', async () => {
  await follow('tea')

  expect(await statementsDuring(() => listFollowed())).toBe(2)
  expect(await statementsDuring(() => follow('cats'))).toBe(4)
  expect(await statementsDuring(() => unfollow('cats'))).toBe(2)
})

it('answers 403 for tokens with other scopes', async () => {
  expectError(await (await alice.with('tags:modify')).get('/tag_followings'), 403)
  expectError(await (await alice.with('tags:read')).post('/tag_followings', { name: 'cats' }), 403)
  expectError(await (await alice.with('tags:read')).delete('/tag_followings/cats'), 403)
})
