import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ApiPerson } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

describe.each([
  ['U+055B', '\u055B'],
  ['U+055C', '\u055C'],
  ['U+055E', '\u055E'],
  ['U+058A', '\u058A'],
])('a tag with the Armenian mark %s', (_name, mark) => {
  const tag = `ինչ${mark}ու`
  let api: SampleApiPod
  let alice: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice } = api)
  })
  afterAll(() => api.close())

  const readList = async (path: string) => (await alice.get(`${path}${encodeURIComponent(tag)}`)).body

  it('is one tag in posts, profiles and followed tags, and is found as such', async () => {
    const guid = await publish(api, api.bob, { text: `Look: #${tag}!`, public: true })
    await publish(api, api.bob, { text: '#ինչ', public: true })
    await api.bob.patch('/user', { tags: [`#${tag}`] })
    await alice.post('/tag_followings', { name: tag })

    expect((await readList('/search/posts?tag=')).map((post: { guid: string }) => post.guid)).toEqual([guid])
    expect(await readList('/search/tags?query=')).toEqual([tag])
    expect((await readList('/search/users?tag=')).map((person: { guid: string }) => person.guid)).toEqual([
      api.bob.guid,
    ])
    expect((await alice.get(`/users/${api.bob.guid}`)).body.tags).toEqual([tag])
    expect((await alice.get('/tag_followings')).body).toEqual([tag])
    expect((await alice.get('/streams/tags')).body.map((post: { guid: string }) => post.guid)).toEqual([guid])
  })
})
