import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { upsertPhotos } from '../../../src/persistence/inbound/insert-photos.js'
import { Photo } from '../../../src/persistence/models/photo.js'
import type { PhotoEntity } from '../../../src/protocol/entities/posts.js'
import { addPost } from '../../support/databases/rows.js'
import { photoBy, pollWith, postBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, photos, tombstones')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

function catBy(author: RemotePerson, fields: Partial<PhotoEntity> = {}): PhotoEntity {
  return photoBy(author, { text: 'A cat', height: 480, width: 640, ...fields })
}

const photos = () => Photo.query(pod.db).orderBy('id')

describe('a photo on its own', () => {
  it('is stored, and updated when its author sends it again', async () => {
    const photo = catBy(quin)
    expect(await receive(pod, publicMessage(quin, photo))).toEqual(allStored)
    expect(await photos()).toMatchObject([
      { guid: photo.guid, authorId: quin.id, public: true, height: 480, width: 640, text: 'A cat', name: 'one.jpg' },
    ])

    const changed = { ...photo, height: 48, width: 64, text: undefined, remote_photo_name: 'two.jpg' }
    expect(await receive(pod, publicMessage(quin, { ...photo, height: 1 }), publicMessage(quin, changed))).toEqual(
      allStored,
    )
    expect(await photos()).toMatchObject([{ height: 48, width: 64, text: null, name: 'two.jpg', pending: false }])
  })

  it('keeps its author', async () => {
    const photo = catBy(quin)
    const stolen = catBy(remy, { guid: photo.guid, text: 'Mine' })

    expect(await receive(pod, publicMessage(quin, photo), publicMessage(remy, stolen))).toEqual({
      ...allStored,
      rejected: ['InvalidAuthor'],
    })
    expect(await receive(pod, publicMessage(remy, stolen))).toEqual({ ...allStored, rejected: ['InvalidAuthor'] })
    expect(await photos()).toMatchObject([{ authorId: quin.id, text: 'A cat' }])
  })

  it('keeps its author when another photo with its guid arrives concurrently', async () => {
    const photo = {
      guid: newGuid(),
      public: true,
      remotePath: 'https://x.example/',
      name: 'a.png',
      createdAt: new Date(),
    }
    const put = (author: RemotePerson, text: string) =>
      pod.db.transaction((transaction) => upsertPhotos(transaction, [{ ...photo, author: author.address, text }]))

    expect(await put(quin, 'First')).toMatchObject([{ guid: photo.guid, isNew: true }])
    expect(await put(remy, 'Mine')).toEqual([])
    expect(await put(quin, 'Second')).toMatchObject([{ guid: photo.guid, isNew: false }])
    expect(await photos()).toMatchObject([{ authorId: quin.id, text: 'Second' }])
  })

  it.each([
    [
      'photo',
      (mine: RemotePerson, theirs: RemotePerson) => {
        const photo = catBy(mine)
        return [postBy(mine, { photos: [photo] }), postBy(theirs, { photos: [{ ...photo, author: theirs.address }] })]
      },
    ],
    [
      'poll',
      (mine: RemotePerson, theirs: RemotePerson) => {
        const poll = pollWith('Yes', 'No')
        return [postBy(mine, { poll }), postBy(theirs, { poll })]
      },
    ],
  ])('a photo of a post is not moved to another post of the same batch: a %s', async (_what, make) => {
    const [mine, theirs] = make(quin, remy)
    if (mine === undefined || theirs === undefined) throw new Error('There are two posts.')

    expect(await receive(pod, publicMessage(quin, mine), publicMessage(remy, theirs))).toEqual(allStored)

    expect(await pod.db('posts').orderBy('id').pluck('author_id')).toEqual([quin.id, remy.id])
    const [photo, poll] = await pod.rows('photos', 'polls')
    expect((photo ?? 0) + (poll ?? 0)).toBe(1)
  })

  it('belongs to the post of its author that it names, now or later', async () => {
    const [mine, theirs] = [await addPost(pod, quin), await addPost(pod, remy)]
    const later = newGuid()
    const three = [mine.guid, theirs.guid, later].map((guid) => catBy(quin, { status_message_guid: guid }))

    await receive(pod, ...three.map((photo) => publicMessage(quin, photo)))

    expect(await photos().select('postId', 'postGuid').whereNotNull('postId')).toEqual([
      { postId: mine.id, postGuid: null },
    ])
    expect((await photos().whereNull('postId')).map(({ postGuid }) => postGuid).sort()).toEqual(
      [theirs.guid, later].sort(),
    )
    await receive(pod, publicMessage(quin, { ...three[0], status_message_guid: undefined } as PhotoEntity))
    expect(await photos().whereNotNull('postId')).toHaveLength(1)
  })

  it('a private photo is shown to each recipient, and never becomes public', async () => {
    const photo = catBy(quin, { public: false })
    expect(await receive(pod, publicMessage(quin, photo))).toEqual({ ...allStored, rejected: ['NotPublic'] })

    expect(await receive(pod, privateMessage(quin, ann, photo))).toEqual(allStored)
    expect(
      await receive(pod, privateMessage(quin, ben, photo), publicMessage(quin, { ...photo, public: true })),
    ).toEqual(allStored)

    expect(await photos()).toMatchObject([{ public: false }])
    const shown = await pod.db('photoVisibilities').orderBy('userId').select('userId')
    expect(shown).toEqual([{ userId: ann.userId }, { userId: ben.userId }])
  })

  it.each(['javascript:alert(1)/', '/uploads/images/', `https://x.example/${'x'.repeat(2_048)}/`])(
    'that lies at %s is refused',
    async (path) => {
      expect(await receive(pod, publicMessage(quin, catBy(quin, { remote_photo_path: path })))).toEqual({
        ...allStored,
        rejected: ['ValidationError'],
      })
      expect(await photos()).toEqual([])
    },
  )
})
