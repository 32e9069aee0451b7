import { afterAll, beforeAll, expect, it } from 'vitest'
import { addPost } from '../../support/databases/rows.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

const guidsOf = (posts: readonly { guid: string }[]) => posts.map(({ guid }) => guid)
const search = (who: Pick<ApiPerson, 'get'>, tag: string) => who.get(`/search/posts?tag=${encodeURIComponent(tag)}`)
const findPosts = async (who: Pick<ApiPerson, 'get'>, tag: string) => guidsOf((await search(who, tag)).body)

it('needs a tag', async () => {
  for (const query of ['', '?tag=', '?tag=%23', '?tag=%20', '?tag[]=cats', '?tag=%00']) {
    expectError(await api.alice.get(`/search/posts${query}`), 422)
  }
})

it('finds nothing under a tag that is unused, or only used in a comment', async () => {
  await api.bob.post(`/posts/${api.alicePost}/comments`, { body: '#onlyincomments' })

  for (const tag of ['neverused', 'onlyincomments', 'x'.repeat(256)]) {
    const answer = await search(api.alice, tag)
    expect([answer.status, answer.body, answer.headers.link]).toEqual([200, [], undefined])
  }
})

it('finds the posts with the tag, in every spelling, the newest first, with the interactions of the viewer', async () => {
  const older = await publish(api, api.carol, { text: 'Look, #Kittens!', public: true })
  const newer = await publish(api, api.dan, { text: '#kittens', public: true })
  await publish(api, api.dan, { text: '#kittensAndCats', public: true })
  await api.alice.post(`/posts/${newer}/likes`)

  for (const tag of ['kittens', '#kittens', '#KITTENS']) expect(await findPosts(api.alice, tag)).toEqual([newer, older])
  const [first, second] = (await search(api.alice, 'kittens')).body
  expect([first.own_interaction_state.liked, second.own_interaction_state.liked]).toEqual([true, false])
})

it('finds tags of any script', async () => {
  const post = await publish(api, api.dan, { text: 'Das ist #Übung, und das #日本語', public: true })

  expect(await findPosts(api.alice, 'übung')).toEqual([post])
  expect(await findPosts(api.alice, '日本語')).toEqual([post])
})

it('finds private posts only for their readers with private:read', async () => {
  await share(api, api.carol, api.dan)
  const aspectIds = [await aspectOf(api, api.carol, 'Friends')]
  const shown = await publish(api, api.carol, { text: '#secrets', public: false, aspectIds })

  expect(await findPosts(api.dan, 'secrets')).toEqual([shown])
  expect(await findPosts(api.carol, 'secrets')).toEqual([shown])
  expect(await findPosts(await api.dan.with(), 'secrets')).toEqual([])
  expect(await findPosts(await api.carol.with(), 'secrets')).toEqual([])
  expect(await findPosts(api.eve, 'secrets')).toEqual([])
})

it('omits hidden posts and posts by a blocked person', async () => {
  const { gus } = await api.people('gus')
  const hers = await publish(api, api.carol, { text: '#leftout', public: true })
  const his = await publish(api, api.bob, { text: '#leftout', public: true })
  expect(await findPosts(gus, 'leftout')).toEqual([his, hers])

  await gus.post(`/posts/${his}/hide`, { hide: true })
  await gus.post(`/users/${api.carol.guid}/block`)
  expect(await findPosts(gus, 'leftout')).toEqual([])
  expect(await findPosts(api.alice, 'leftout')).toEqual([his, hers])

  await gus.post(`/posts/${his}/hide`, { hide: false })
  await gus.delete(`/users/${api.carol.guid}/block`)
  expect(await findPosts(gus, 'leftout')).toEqual([his, hers])
})

it('returns each of 40 posts of one millisecond exactly once, in both directions', async () => {
  const quin = await addRemotePerson(api.pod, 'quin@q.example')
  const createdAt = new Date('2025-03-01T08:15:30.250Z')
  const [tag] = await api.pod.db('tags').insert({ name: 'pagedsearch' }).returning('id')
  const newestFirst: string[] = []
  for (let i = 0; i < 40; i += 1) {
    const post = await addPost(api.pod, quin, { createdAt })
    await api.pod.db('taggings').insert({ tagId: tag.id, postId: post.id, createdAt })
    newestFirst.unshift(post.guid)
  }

  const path = '/search/posts?tag=pagedsearch&per_page=7'
  expect(guidsOf(await readAllPages(api.alice, path))).toEqual(newestFirst)
  expect(guidsOf(await readAllPages(api.alice, `${path}&after=2025-03-01`))).toEqual(newestFirst.toReversed())
  const { links } = await api.alice.get(path)
  expect(Object.keys(links).toSorted()).toEqual(['next', 'previous'])
  expect((await api.alice.get(links.previous ?? '')).body).toEqual([])
})
