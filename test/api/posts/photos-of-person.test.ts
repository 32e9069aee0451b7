import { afterAll, beforeAll, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import type { Photo } from '../../../src/persistence/models/photo.js'
import { Post } from '../../../src/persistence/models/post.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

const photosOf = ({ guid }: Pick<ApiPerson, 'guid'>, query = '') => `/users/${guid}/photos${query}`
const guidsOf = (photos: readonly { guid: string }[]) => photos.map(({ guid }) => guid)

async function addPhoto(authorId: number, fields: Partial<Photo> = {}): Promise<Pick<Photo, 'id' | 'guid'>> {
  const [photo] = await api.pod
    .db('photos')
    .insert({ guid: newGuid(), authorId, name: 'a.jpg', public: true, ...fields })
    .returning(['id', 'guid'])
  return photo
}

it('lists the photos that are not pending, and the private ones only with private:read', async () => {
  const { personId } = api.bob.viewer
  const [pb, rb] = [await postId(api.bobPost), await postId(api.bobFriendsPost)]
  const attached = await addPhoto(personId, { postId: pb })
  const seen = await addPhoto(personId, { postId: rb, public: false })
  await api.pod.db('photoVisibilities').insert({ userId: api.alice.viewer.userId, photoId: seen.id })
  const opaqueParam = await addPhoto(personId, { public: false })
  const alone = await addPhoto(personId, { height: 30, width: 40 })
  await addPhoto(personId, { pending: true })
  await addPhoto(personId, { pending: true, public: false })

  const answer = await api.alice.get(photosOf(api.bob))

  expect(guidsOf(answer.body)).toEqual([alone.guid, seen.guid, attached.guid])
  expect(answer.body[0]).toEqual({
    guid: alone.guid,
    created_at: expect.any(String),
    dimensions: { height: 30, width: 40 },
    sizes: {
      raw: 'https://pod.example/uploads/images/a.jpg',
      large: 'https://pod.example/uploads/images/scaled_full_a.jpg',
      medium: 'https://pod.example/uploads/images/thumb_medium_a.jpg',
      small: 'https://pod.example/uploads/images/thumb_small_a.jpg',
    },
  })
  expect(answer.body[1]).toMatchObject({ post: api.bobFriendsPost, dimensions: { height: null, width: null } })
  expect(guidsOf((await (await api.alice.with()).get(photosOf(api.bob))).body)).toEqual([alone.guid, attached.guid])
  expect(guidsOf((await api.dan.get(photosOf(api.bob))).body)).toEqual([alone.guid, attached.guid])
  const own = [alone.guid, opaqueParam.guid, seen.guid, attached.guid]
  expect(guidsOf((await api.bob.get(photosOf(api.bob))).body)).toEqual(own)
  expect(guidsOf((await (await api.bob.with()).get(photosOf(api.bob))).body)).toEqual([alone.guid, attached.guid])
})

it('an unknown person is a 404 before any other error', async () => {
  for (const query of ['', '?before=soon', '?per_page=x']) {
    expectError(await api.alice.get(`/users/${newGuid()}/photos${query}`), 404)
  }
  expectError(await api.alice.get(photosOf(api.bob, '?after=soon')), 422)
})

it('leaves out photos without a web address, and continues after them', async () => {
  const { id, guid } = await addRemotePerson(api.pod, 'quin@q.example')
  const createdAt = new Date('2025-01-01')
  const first = await addPhoto(id, { createdAt, remotePath: 'https://q.example/up/' })
  for (let i = 0; i < 5; i += 1) await addPhoto(id, { createdAt, remotePath: 'file:///etc/' })
  const last = await addPhoto(id, { createdAt, remotePath: 'https://q.example/up/' })

  const page = await api.alice.get(photosOf({ guid }, '?per_page=3'))
  expect(guidsOf(page.body)).toEqual([last.guid])
  expect((await api.alice.get(page.links.next ?? '')).body).toEqual([])
  expect(guidsOf((await api.alice.get(photosOf({ guid }))).body)).toEqual([last.guid, first.guid])
})

it('returns each of 20 photos of one millisecond exactly once, with two statements a page', async () => {
  const { id, guid } = await addRemotePerson(api.pod, 'remy@r.example')
  const guids: string[] = []
  for (let i = 0; i < 20; i += 1) guids.unshift((await addPhoto(id, { createdAt: new Date('2025-01-01') })).guid)

  expect(guidsOf(await readAllPages(api.alice, photosOf({ guid }, '?per_page=6')))).toEqual(guids)
  expect(await statementsDuring(() => api.alice.get(photosOf({ guid })))).toBe(2)
})

async function postId(guid: string): Promise<number> {
  return (await Post.query(api.pod.db).findOne({ guid }).throwIfNotFound()).id
}
