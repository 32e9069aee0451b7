import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const LIMIT = 5

let web: TestPod
let alice: TestPerson
let bob: TestPerson
let now = new Date('2025-05-06T07:08:09Z')
beforeAll(async () => {
  const change = (pod: TestPod['pod']) => ({ ...pod, now: () => now })
  web = await buildPod({ environment: { WRITE_LIMIT: `${LIMIT}` }, change })
  ;({ alice, bob } = await web.people('alice', 'bob'))
})
afterAll(() => web.close())
beforeEach(() => {
  now = new Date(now.getTime() + 3_600_000)
})

const passTime = (seconds: number) => {
  now = new Date(now.getTime() + seconds * 1_000)
}
const write = ({ patch }: Pick<TestPerson, 'patch'>) => patch('/api/v1/user', { bio: 'x' })
const statusesOf = async (client: Pick<TestPerson, 'patch'>, times: number) => {
  const statuses: number[] = []
  for (let time = 0; time < times; time += 1) statuses.push((await write(client)).statusCode)
  return statuses
}
const allWell = (times: number) => Array.from({ length: times }, () => 200)

it('the write limit is 600 a minute, and can be changed or turned off', () => {
  const limitOf = (WRITE_LIMIT?: string) => readConfig({ ...(WRITE_LIMIT && { WRITE_LIMIT }) }).writeLimit

  expect([limitOf(), limitOf('7'), limitOf('0')]).toEqual([600, 7, 0])
  expect(() => limitOf('-1')).toThrow('WRITE_LIMIT must be a number from 0')
})

it('allows as many writes as set, and refuses the next one with Retry-After', async () => {
  expect(await statusesOf(alice, LIMIT)).toEqual(allWell(LIMIT))
  passTime(20)
  const refused = await write(alice)

  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([429, '40'])
  expect(refused.json()).toMatchObject({ code: 429, message: expect.stringContaining('40 seconds') })
  passTime(40)
  expect(await statusesOf(alice, LIMIT + 1)).toEqual([...allWell(LIMIT), 429])
})

it('the write limit counts per person: their clients share it, other persons have their own', async () => {
  const other = await alice.with('profile:modify')
  const statuses = [...(await statusesOf(alice, LIMIT - 1)), ...(await statusesOf(other, 2))]

  expect(statuses).toEqual([...allWell(LIMIT), 429])
  expect((await write(alice)).statusCode).toBe(429)
  expect(await statusesOf(bob, LIMIT)).toEqual(allWell(LIMIT))
})

it('the write limit counts successful writes, and neither reads nor refused requests', async () => {
  for (let time = 0; time < LIMIT * 2; time += 1) expect((await alice.get('/api/v1/user')).statusCode).toBe(200)
  const missing = '/api/v1/posts/0123456789abcdef'
  const tries = [
    await alice.post(`${missing}/comments`, { body: 'x' }),
    await alice.post(`${missing}/likes`),
    await alice.delete(missing),
    await alice.post(`${missing}/report`, { reason: 'x' }),
    await alice.post('/api/v1/posts', { public: true, body: 'x' }),
  ]

  expect(tries.map(({ statusCode }) => statusCode)).toEqual([404, 404, 404, 404, 200])
  expect(await statusesOf(alice, LIMIT)).toEqual([...allWell(LIMIT - 1), 429])
  expect((await alice.get('/api/v1/user')).statusCode).toBe(200)
})

it('the write limit counts a form once, with the token in the form or outside of it', async () => {
  const send = (payload: string, headers = {}) =>
    web.inject({
      method: 'PATCH',
      url: '/api/v1/user',
      payload,
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    })
  const statuses: number[] = []
  for (let time = 0; time < LIMIT; time += 1) {
    const { statusCode } =
      time % 2 === 0
        ? await send(`bio=x&access_token=${alice.token}`)
        : await send('bio=x', { authorization: `Bearer ${alice.token}` })
    statuses.push(statusCode)
  }

  expect(statuses).toEqual(allWell(LIMIT))
  expect((await send(`bio=x&access_token=${alice.token}`)).statusCode).toBe(429)
})

it('the write limit refuses a request before its body is read', async () => {
  await statusesOf(alice, LIMIT)
  const tooLarge = { bio: 'x'.repeat(2_000_000) }

  expect((await alice.patch('/api/v1/user', tooLarge)).statusCode).toBe(429)
})

it('the write limit is in the API description of every operation that changes something', async () => {
  const { paths } = (await web.inject('/api/docs/json')).json()
  const calls = Object.values<Record<string, { operationId: string; responses: object }>>(paths).flatMap((path) =>
    Object.entries(path),
  )
  const tells = ([, { responses }]: (typeof calls)[number]) => '429' in responses

  // Streams of events have a limit of their own.
  const reads = calls.filter(([method, { operationId }]) => method === 'get' && operationId !== 'listen')
  expect(reads.filter(tells)).toEqual([])
  expect(calls.filter(([method]) => method !== 'get').every(tells)).toBe(true)
})
