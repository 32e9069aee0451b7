import { afterAll, beforeAll, expect, it } from 'vitest'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type ApiPerson, type ApiPod, expectError, readAllPages, startApiPod } from '../../support/pods/api-pod.js'
import { aspectOf, publish } from '../../support/pods/sample-api-pod.js'

let api: ApiPod
let alice: ApiPerson
let carol: ApiPerson
beforeAll(async () => {
  api = await startApiPod()
  ;({ alice, carol } = await api.people('alice', 'carol'))
  await publish(api, alice, { text: '#Cat #cats #catalogue #ca #dog #katze #c_a #<3 #ärger', public: true })
  await alice.post('/tag_followings', { name: 'catfish' })
})
afterAll(() => api.close())

const search = (query: string) => alice.get(`/search/tags?query=${encodeURIComponent(query)}`)

it('finds the tags that begin with a text, in order', async () => {
  const answer = await search('cat')

  expect(answer.status).toBe(200)
  expect(answer.body).toEqual(['cat', 'catalogue', 'catfish', 'cats'])
  expect(answer.links).toEqual({})
})

it('accepts a tag in each of its forms', async () => {
  for (const query of ['CAT', '#cat', '#Cat', 'c at']) expect((await search(query)).body).toContain('cats')
  expect((await search('ÄR')).body).toEqual(['ärger'])
  expect((await search('<3')).body).toEqual(['<3'])
  expect((await search('c_')).body).toEqual(['c_a'])
  expect((await search('c%')).body).toEqual(['c_a', 'ca', 'cat', 'catalogue', 'catfish', 'cats'])
})

it('returns an empty list if no tag matches', async () => {
  for (const query of ['zebra', 'catss', 'x'.repeat(255)])
    expect(await search(query)).toMatchObject({ status: 200, body: [] })
})

it('requires a query', async () => {
  for (const query of ['', ' ', '#', '!?', 'x'.repeat(5_000)]) expectError(await search(query), 422)
  for (const query of ['', '?query[]=cat', '?query=cat&query=dog', '?query=%00', '?query=cat&page=x']) {
    expectError(await alice.get(`/search/tags${query}`), 422)
  }
})

it('returns an empty list for a query longer than a tag', async () => {
  const answer = await search('x'.repeat(256))

  expect([answer.status, answer.body]).toEqual([200, []])
})

it('is paged', async () => {
  for (const items of [1, 2, 3]) {
    expect(await readAllPages(alice, `/search/tags?query=%23Cat&per_page=${items}`)).toEqual([
      'cat',
      'catalogue',
      'catfish',
      'cats',
    ])
  }
  const second = await alice.get('/search/tags?query=cat&per_page=3&page=2')
  expect(second.links).toEqual({ previous: expect.stringContaining('query=cat&per_page=3&page=1') })
  expect((await alice.get('/search/tags?query=cat&page=7')).body).toEqual([])
})

it('needs only the basic scope, and takes one statement', async () => {
  const client = await alice.with()

  expect((await client.get('/search/tags?query=dog')).body).toEqual(['dog'])
  expect(await statementsDuring(() => client.get('/search/tags?query=dog'))).toBe(2)
})

it('finds tags of private posts for their author only, and followed tags for their follower only', async () => {
  const aspectIds = [await aspectOf(api, alice, 'Friends')]
  await publish(api, alice, { text: 'My #privateailment', public: false, aspectIds })
  await alice.post('/tag_followings', { name: 'privateinterest' })
  const findTags = async (person: ApiPerson) => (await person.get('/search/tags?query=private')).body

  expect(await findTags(alice)).toEqual(['privateailment', 'privateinterest'])
  expect(await findTags(carol)).toEqual([])

  await publish(api, carol, { text: 'Everybody knows #privateailment', public: true })
  expect(await findTags(carol)).toEqual(['privateailment'])
})
