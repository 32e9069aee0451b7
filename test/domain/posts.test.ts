import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { requirePost } from '../../src/domain/posts/post-access.js'
import { type NewPost, publishPost } from '../../src/domain/posts/publish-post.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import { Photo } from '../../src/persistence/models/photo.js'
import { Post } from '../../src/persistence/models/post.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

describe('publishing a post', () => {
  let pod: TestPod
  let ann: Viewer
  let ben: Viewer
  let cem: Viewer
  beforeAll(async () => {
    pod = await buildPod()
    const people = await pod.people('ann', 'ben', 'cem')
    ann = await viewerOf(pod.pod, people.ann)
    ben = await viewerOf(pod.pod, people.ben)
    cem = await viewerOf(pod.pod, people.cem)
  })
  afterAll(() => pod.close())

  const publish = (input: Partial<NewPost> = {}, viewer = ann) =>
    publishPost(pod.pod, viewer, { text: 'Good morning', public: true, ...input })
  const read = (post: Post) =>
    Post.query(pod.pod.db)
      .findById(post.id)
      .withGraphFetched('[photos, location, poll.answers, tags, mentionedPeople, aspects, readers]')
      .throwIfNotFound()
  const addPhoto = (viewer: Viewer, fields: Partial<Photo> = {}) =>
    Photo.query(pod.pod.db)
      .insert({ guid: newGuid(), authorId: viewer.personId, pending: true, name: 'a.png', ...fields })
      .returning('*')

  /** An aspect of its own, with these people in it. */
  async function aspectWith(viewer: Viewer, ...personIds: number[]): Promise<number> {
    const { db } = pod.pod
    const aspect = await Aspect.query(db).insert({ userId: viewer.userId, name: newGuid(), position: 9 }).returning('*')
    for (const personId of personIds) {
      const contact = await Contact.query(db)
        .insert({ userId: viewer.userId, personId, receiving: true })
        .onConflict(['userId', 'personId'])
        .merge(['receiving'])
        .returning('*')
      await aspect.$relatedQuery('contacts', db).relate(contact.id)
    }
    return aspect.id
  }

  it('stores it with everything that is part of it', async () => {
    const quin = await addRemotePerson(pod.pod, 'quin@q.example')
    await publish({ text: 'Something #else' })
    const [second, first] = [await addPhoto(ann), await addPhoto(ann)]

    const post = await publish({
      text: 'Tea with @{quin@q.example} and @{nobody@q.example} #Tea #tea',
      photoGuids: [first.guid, second.guid],
      poll: { question: 'Tea?', answers: ['Yes', 'No', 'Yes'] },
      location: { address: 'Berlin', lat: '52.50', lng: '13.4' },
    })

    expect(post.guid).toMatch(/^[0-9a-f]{32}$/)
    const stored = await read(post)
    expect(stored).toMatchObject({
      type: 'StatusMessage',
      public: true,
      authorId: ann.personId,
      commentsCount: 0,
      location: { address: 'Berlin', lat: '52.50', lng: '13.4' },
      poll: { question: 'Tea?' },
    })
    expect(stored.poll?.answers?.map(({ position, answer }) => [position, answer])).toEqual([
      [0, 'Yes'],
      [1, 'No'],
      [2, 'Yes'],
    ])
    expect(stored.tags?.map(({ name }) => name)).toEqual(['tea'])
    expect(stored.mentionedPeople?.map(({ id }) => id)).toEqual([quin.id])
    const photos = (stored.photos ?? []).sort((one, other) => one.position - other.position)
    expect(photos.map(({ guid, pending, public: shown }) => [guid, pending, shown])).toEqual([
      [first.guid, false, true],
      [second.guid, false, true],
    ])
  })

  it('makes a private post and its photos visible to the local members of its aspects', async () => {
    const quin = await addRemotePerson(pod.pod, 'remy@r.example')
    const photo = await addPhoto(ann)
    const aspects = [await aspectWith(ann, ben.personId, quin.id), await aspectWith(ann, ben.personId)]

    const post = await publish({ public: false, aspectIds: aspects, photoGuids: [photo.guid] })

    const stored = await read(post)
    expect(stored.aspects?.map(({ id }) => id).sort()).toEqual([...aspects].sort())
    expect(stored.readers?.map(({ id }) => id)).toEqual([ben.userId])
    expect(stored.photos?.[0]).toMatchObject({ public: false, pending: false })
    const rows = await pod.pod.db('photoVisibilities').where({ photoId: photo.id })
    expect(rows).toEqual([{ userId: ben.userId, photoId: photo.id }])
    for (const viewer of [ann, ben]) {
      await expect(requirePost(pod.pod, viewer, post.guid)).resolves.toMatchObject({ guid: post.guid })
    }
    await expect(requirePost(pod.pod, cem, post.guid)).rejects.toMatchObject({ reason: 'post_not_found' })
  })

  it('shows a private post only to a token that may read private posts', async () => {
    const post = await publish({ public: false, aspectIds: [await aspectWith(ann, ben.personId)] })
    const limited = { ...ben, scopes: new Set(['public:read'] as const) }

    await expect(requirePost(pod.pod, limited, post.guid)).rejects.toMatchObject({ reason: 'post_not_found' })
  })

  it('mentions in a private post only who can read it', async () => {
    await addRemotePerson(pod.pod, 'sam@s.example', { profile: { firstName: 'Sam [S]' } })
    const benPerson = await Person.query(pod.pod.db).findById(ben.personId).throwIfNotFound()
    const sam = await Person.query(pod.pod.db).findOne({ address: 'sam@s.example' }).throwIfNotFound()

    const post = await publish({
      public: false,
      aspectIds: [await aspectWith(ann, ben.personId)],
      text: `@{${benPerson.address}} @{sam@s.example} @{Sammy; sam@s.example} @{no@s.example} end`,
    })

    const url = `https://pod.example/people/${sam.guid}`
    const stored = await read(post)
    expect(stored.text).toBe(`@{${benPerson.address}} [Sam S](${url}) [Sammy](${url}) no@s.example end`)
    expect(stored.mentionedPeople?.map(({ id }) => id)).toEqual([ben.personId])
  })

  it('leaves out people who have left', async () => {
    const { gone } = await pod.people('gone')
    const { personId } = await viewerOf(pod.pod, gone)
    await closeUser(pod.pod, 'gone')

    const post = await publish({ public: false, aspectIds: [await aspectWith(ann, personId)] })

    expect((await read(post)).readers).toEqual([])
  })

  it.each<[string, Partial<NewPost>]>([
    ['text_required', { text: ' \n' }],
    ['text_required', { text: '', poll: { question: 'Tea?', answers: ['Yes', 'No'] } }],
    ['text_invalid', { text: 'x'.repeat(65_536) }],
    ['text_invalid', { text: 'a\u0000b' }],
    ['text_invalid', { text: 'a\ud800b' }],
    ['aspects_required', { public: false }],
    ['aspects_required', { public: false, aspectIds: [] }],
    ['aspects_required', { public: false, aspectIds: [-1, 2_147_483_647] }],
    ['photos_invalid', { photoGuids: ['0123456789abcdef'] }],
    ['poll_invalid', { poll: { question: ' ', answers: ['Yes', 'No'] } }],
    ['poll_invalid', { poll: { question: 'Tea?', answers: ['Yes'] } }],
    ['poll_invalid', { poll: { question: 'Tea?', answers: ['Yes', ' '] } }],
    ['poll_invalid', { poll: { question: 'Tea?', answers: ['Yes', 'x'.repeat(256)] } }],
    ['poll_invalid', { poll: { question: 'Tea?', answers: Array.from({ length: 101 }, () => 'Yes') } }],
    ['location_invalid', { location: { address: 'Berlin', lat: '', lng: '13' } }],
  ])('is refused as %s and leaves nothing behind: %#', async (reason, input) => {
    const before = await Post.query(pod.pod.db).resultSize()

    expect(await reasonOf(publish(input))).toBe(reason)
    expect(await Post.query(pod.pod.db).resultSize()).toBe(before)
  })

  it('takes the longest text there may be, counted in code points', async () => {
    expect(await reasonOf(publish({ text: '🍵'.repeat(65_535) }))).toBe('done')
  })

  it('passes over a location without an address', async () => {
    const post = await publish({ location: { address: ' ', lat: '', lng: '' } })

    expect((await read(post)).location).toBeNull()
  })

  it('refuses photos of others, photos of other posts, and repeated photos', async () => {
    const foreign = await addPhoto(ben)
    const used = await addPhoto(ann, { pending: false })
    const own = await addPhoto(ann)

    for (const photoGuids of [[foreign.guid], [used.guid], [own.guid, own.guid]]) {
      expect(await reasonOf(publish({ photoGuids }))).toBe('photos_invalid')
    }
    expect(await reasonOf(publish({ photoGuids: [own.guid] }))).toBe('done')
    expect(await reasonOf(publish({ photoGuids: [own.guid] }))).toBe('photos_invalid')
  })

  it('ignores aspects of other users', async () => {
    const foreign = await aspectWith(ben, cem.personId)

    expect(await reasonOf(publish({ public: false, aspectIds: [foreign] }))).toBe('aspects_required')
  })

  it('needs a token that may publish private posts', async () => {
    const limited = { ...ann, scopes: new Set(['public:modify', 'private:read'] as const) }
    const aspectIds = [await aspectWith(ann)]

    expect(await reasonOf(publish({ public: false, aspectIds }, limited))).toBe('insufficient_scope')
    expect(await reasonOf(publish({}, limited))).toBe('done')
  })
})
