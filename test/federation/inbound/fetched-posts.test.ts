import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { fetchEntity } from '../../../src/federation/discovery/fetch-entity.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { DAY_MS } from '../../../src/protocol/durations.js'
import type { ReshareEntity, StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { addPost } from '../../support/databases/rows.js'
import { archivedRelayable, archiveOf, writeArchiveFile } from '../../support/federation/archives.js'
import { commentBy, postBy, reshareBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import { publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let folder: string
let pod: FederationPod
let al: LocalUser
let bob: LocalUser
let carl: RemotePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-fetched-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder }, pictures: openFolderPictures(folder) }
  await pod.pictures.check()
  ;({ al, bob } = await pod.localUsers('al', 'bob'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty('account_migrations, imports, posts, notifications, outbox')
  ;({ carl } = await pod.remotePeople('carl'))
})

const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS)
const mentionOfBob = (days: number) => postBy(carl, { text: `Hello @{Bob; ${bob.address}}`, created_at: daysAgo(days) })

async function news(): Promise<readonly string[]> {
  return pod.db('notifications').orderBy('id').pluck('type')
}

async function notifiedActors(): Promise<readonly number[]> {
  return pod.db('notification_actors').orderBy('notification_id').pluck('person_id')
}

/** An import of an archive with comments on a reshare and on a post of carl. */
async function importReferringTo(reshared: ReshareEntity, commented: StatusMessageEntity) {
  const old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
  const archive = archiveOf(old, {
    user: {
      relayables: [reshared, commented].map((post) => archivedRelayable(commentBy(old, post))),
    },
  })
  // The old pod has the public posts on which its people have commented.
  for (const post of [reshared, commented]) {
    pod.fakePods.script(`old.example/fetch/post/${post.guid}`, (_request, response) =>
      response.setHeader('content-type', 'application/magic-envelope+xml').end(envelopeOf(carl, post)),
    )
  }
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archive),
    photosFile: undefined,
    user: { userId: al.userId, personId: al.id, address: al.address, username: 'al' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: old.address,
  })
  return runImport(pod, id, { signal: new AbortController().signal, makePicture: makeImportedPicture })
}

it('sends no notification about posts that an import fetches', async () => {
  const root = await addPost(pod, bob)
  const [old, recent] = [mentionOfBob(3_000), mentionOfBob(1)]
  const reshare = reshareBy(carl, { guid: root.guid, author: bob.address })
  expect((await importReferringTo(reshare, old))?.counts.relayables).toMatchObject({ imported: 2 })
  expect((await importReferringTo(reshare, recent))?.counts.relayables).toMatchObject({ imported: 2 })
  expect(await pod.db('posts').whereIn('guid', [old.guid, recent.guid, reshare.guid])).toHaveLength(3)
  expect(await news()).toEqual([])
})

it('notifies once about a fetched post of an import when its pod sends it', async () => {
  const root = await addPost(pod, bob)
  const mention = mentionOfBob(1)
  const reshare = { ...reshareBy(carl, { guid: root.guid, author: bob.address }), created_at: daysAgo(2) }
  await importReferringTo(reshare, mention)
  expect(await news()).toEqual([])

  await receive(pod, publicMessage(carl, mention), publicMessage(carl, reshare))
  expect([...(await news())].sort()).toEqual(['mentioned', 'reshared'])
  expect(await notifiedActors()).toEqual([carl.id, carl.id])
  await pod.db('notifications').update({ read: true })

  await receive(pod, publicMessage(carl, mention), publicMessage(carl, reshare))
  expect(await pod.db('notifications').where({ read: false })).toEqual([])
  expect(await news()).toHaveLength(2)
})

it('notifies about a fetched post only if it was written recently', async () => {
  const [old, recent] = [mentionOfBob(15), mentionOfBob(13)]
  for (const post of [old, recent]) {
    pod.fakePods.serve(carl, post)
    await fetchEntity(pod, { type: 'post', guid: post.guid, from: carl.address, depth: 0 })
  }
  const mentioned = pod.db('posts').whereIn('id', pod.db('notifications').select('postId'))
  expect(await mentioned.pluck('guid')).toEqual([recent.guid])
})

it('notifies about an old post that its pod sends late', async () => {
  await receive(pod, publicMessage(carl, mentionOfBob(100)))
  expect(await news()).toEqual(['mentioned'])
})
