import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { entityToJson } from '../../../src/protocol/entities/entity-json.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { addPost } from '../../support/databases/rows.js'
import {
  archivedContact,
  archivedPost,
  archivedRelayable,
  archiveOf,
  writeArchiveFile,
} from '../../support/federation/archives.js'
import { commentBy, likeBy, photoBy, pollWith, postBy, voteBy } from '../../support/federation/entities.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let folder: string
let pod: FederationPod
let al: LocalUser
let bob: LocalUser
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-repeated-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder }, pictures: openFolderPictures(folder) }
  await pod.pictures.check()
  ;({ al, bob } = await pod.localUsers('al', 'bob'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})

const twice = <Item>(...items: readonly Item[]) => [...items, ...items]

async function importOf({ address: moveFrom }: FakePerson, archive: unknown) {
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archive),
    photosFile: undefined,
    user: { userId: al.userId, personId: al.id, address: al.address, username: 'al' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom,
  })
  return runImport(pod, id, { signal: new AbortController().signal, makePicture: makeImportedPicture })
}

it('an archive that names everything twice is imported once', async () => {
  const old = pod.fakePods.person('alice@old.example')
  const { carl, carla, dan } = await pod.remotePeople('carl', 'carla', 'dan')
  // Carla was Carl.
  await pod.db('account_migrations').insert({ oldPersonId: carl.id, newPersonId: carla.id, signature: 'x' })
  await pod.db('people').where({ id: carl.id }).update({ closedAt: new Date() })
  const poll = pollWith('yes', 'no')
  const [answer = poll] = poll.poll_answers
  const post = postBy(old, { text: '#garden', poll, photos: [photoBy(old)] })
  const comment = commentBy(dan, post)
  const own = commentBy(old, post)
  const others = [
    comment,
    likeBy(dan, post),
    voteBy(dan, poll, answer),
    likeBy(dan, comment, { parent_type: 'Comment' }),
  ]
  const archive = archiveOf(old, {
    user: {
      contact_groups: twice({ name: 'Garden' }, { name: 'GARDEN ' }),
      contacts: [
        archivedContact(carl.address, { contact_groups_membership: ['Garden'] }),
        archivedContact(carla.address, { sharing: false, contact_groups_membership: ['Family', 'Garden', 'garden'] }),
        ...twice(archivedContact(dan.address)),
      ],
      posts: twice(archivedPost(post)),
      followed_tags: twice('soup', '#soup'),
      blocks: [],
      post_subscriptions: twice(post.guid),
      relayables: twice(archivedRelayable(own), archivedRelayable(likeBy(old, post))),
    },
    others: twice(...others.map((entity) => entityToJson(entity))),
  })
  const done = await importOf(old, archive)

  expect(done?.state).toBe('done')
  expect(await pod.db('contacts').where({ userId: al.userId }).orderBy('person_id').pluck('person_id')).toEqual(
    [carla.id, dan.id].toSorted((one, other) => one - other),
  )
  expect(await pod.db('posts').where({ guid: post.guid }).first()).toMatchObject({
    commentsCount: 2,
    likesCount: 2,
  })
  expect(await pod.db('comments').where({ guid: comment.guid }).first()).toMatchObject({ likesCount: 1 })
  expect(await pod.db('poll_answers').where({ guid: answer.guid }).first()).toMatchObject({ voteCount: 1 })
  expect(done?.counts).toMatchObject({
    relayables: { found: 4, imported: 2, skipped: 2 },
    others_relayables: { found: 8, imported: 4, skipped: 4 },
  })
})

it('an archive adds nothing to private posts that its owner cannot read', async () => {
  const old = pod.fakePods.person('mallory@old.example')
  const [foreign, shown] = [
    await addPost(pod, bob, { public: false, text: 'A secret' }),
    await addPost(pod, bob, { public: false, text: 'For al' }),
  ]
  await pod.db('post_visibilities').insert({
    userId: al.userId,
    postId: shown.id,
    authorId: bob.id,
    createdAt: new Date(),
  })
  const done = await importOf(
    old,
    archiveOf(old, {
      user: {
        post_subscriptions: [foreign.guid, shown.guid],
        relayables: [foreign, shown].flatMap((post) => [
          archivedRelayable(commentBy(old, post)),
          archivedRelayable(likeBy(old, post)),
        ]),
      },
    }),
  )
  expect(done?.counts).toMatchObject({
    relayables: { imported: 2, refused: 2, by_reason: { parent_missing: 2 } },
    subscriptions: { imported: 1, refused: 1, by_reason: { parent_missing: 1 } },
  })
  for (const table of ['comments', 'likes', 'participations']) {
    expect(await pod.db(table).where({ postId: foreign.id })).toEqual([])
    expect(await pod.db(table).where({ postId: shown.id, authorId: al.id })).toHaveLength(1)
  }
})

it('aspects whose names are too long stay distinct, with their contacts, posts and settings', async () => {
  const old = pod.fakePods.person('anna@old.example')
  const [carl, dan] = [await pod.addRemotePerson('carlo@c.example'), await pod.addRemotePerson('danny@d.example')]
  const [first, second] = ['People of the garden in the north', 'People of the garden in the south']
  const post = postBy(old, { public: false })
  const archive = archiveOf(old, {
    user: {
      contact_groups: [first, second, 'People of the gard 2', second.toUpperCase()].map((name) => ({ name })),
      contacts: [
        archivedContact(carl.address, { contact_groups_membership: [first] }),
        archivedContact(dan.address, { contact_groups_membership: [second] }),
      ],
      posts: [archivedPost(post, { aspects: [second] })],
      auto_follow_back: true,
      auto_follow_back_aspect: second,
      settings: { default_post_public: false, default_post_aspects: [second] },
    },
  })
  const done = await importOf(old, archive)

  expect(done?.counts.aspects).toMatchObject({ found: 4, imported: 3, skipped: 1, refused: 0 })
  const names = ['People of the garden', 'People of the gard 2', 'People of the gard 3']
  const aspects = await pod.db('aspects').where({ userId: al.userId }).whereIn('name', names)
  expect(new Set(aspects.map(({ name }) => name))).toEqual(new Set(names))
  const { id: southId } = aspects.find(({ name }) => name === 'People of the gard 3')
  const members = await pod
    .db('aspect_memberships')
    .join('contacts', 'contacts.id', 'contact_id')
    .where({ aspectId: southId })
    .pluck('person_id')
  expect(members).toEqual([dan.id])
  expect(await pod.db('post_aspects').pluck('aspect_id')).toEqual([southId])
  expect(await pod.db('users').where({ id: al.userId }).first()).toMatchObject({ followBackAspectId: southId })
  expect(await pod.db('aspects').where({ userId: al.userId, postDefault: true }).pluck('id')).toEqual([southId])
})
