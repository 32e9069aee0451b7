import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { sendDueAnnouncements } from '../../../src/federation/archives/moves/send-announcements.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { listWaitingPods } from '../../../src/persistence/archives/account-moves.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { entityToJson } from '../../../src/protocol/entities/entity-json.js'
import type { AccountMigrationEntity } from '../../../src/protocol/entities/people.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { addPost } from '../../support/databases/rows.js'
import {
  archivedContact,
  archivedPost,
  archivedRelayable,
  archiveOf,
  writeArchiveFile,
} from '../../support/federation/archives.js'
import { commentBy, postBy, profileOf } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, receive } from '../../support/federation/inbound-messages.js'
import { addRecordingPod } from '../../support/federation/recording-pod.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let folder: string
let al: LocalUser
let anna: FakePerson
let bella: FakePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-earlier-moves-'))
  const uploadsDir = join(folder, 'uploads')
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir }, pictures: openFolderPictures(uploadsDir) }
  await pod.pictures.check()
  ;({ al } = await pod.localUsers('al'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty('account_migrations, imports, posts, contacts, outbox')
  const name = newGuid().slice(0, 8)
  anna = pod.fakePods.person(`anna-${name}@a.example`)
  bella = pod.fakePods.person(`bella-${name}@b.example`)
})

const forever = new AbortController().signal

function envelopeOfMove(from: FakePerson, to: FakePerson, signer = to): string {
  const entity: AccountMigrationEntity = {
    type: 'account_migration',
    author: from.address,
    profile: profileOf(to, { first_name: 'Bella', public: false }),
    signature: signMigration({ from: from.address, to: to.address }, signer.privateKey),
    old_identity: from.address,
    remote_photo_path: undefined,
  }
  return envelopeOf(from, entity)
}

/** Imports an archive of bella, or of somebody else, into the account al. */
async function importWith(user: Readonly<Record<string, unknown>>, owner: FakePerson = bella) {
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archiveOf(owner, { user })),
    photosFile: undefined,
    user: { userId: al.userId, personId: al.id, address: al.address, username: 'al' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: owner.address,
  })
  return runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
}

const moves = () => pod.db('account_migrations').orderBy('id').pluck('old_address')

it('the earlier moves of an archive are announced to the pods that it names, before the newest one', async () => {
  const told = await addRecordingPod(pod.fakePods, pod, `told-${newGuid().slice(0, 8)}.example:3000`)
  const person = await addRemotePerson(pod, anna.address, anna)
  const done = await importWith({
    contacts: [archivedContact(`carl@${told.host}`)],
    migrations: [{ old_address: anna.address, envelope: envelopeOfMove(anna, bella) }],
    posts: [archivedPost(postBy(anna, { text: 'By the first identity' }))],
  })
  expect(done?.counts.posts).toMatchObject({ imported: 1, refused: 0 })
  expect(await moves()).toEqual([anna.address, bella.address])
  expect(await pod.db('people').where({ id: person.id }).first()).toMatchObject({ closedAt: expect.any(Date) })

  await sendDueAnnouncements(pod, forever)
  // The pod of the first identity as well: its old addresses lead to the newest one.
  const announcements = pod.db('migration_announcements').join('pods', 'pods.id', 'pod_id')
  expect(await announcements.where({ host: 'a.example' }).pluck('wave')).toEqual([1, 1])
  const stored = await pod.db('account_migrations').orderBy('id').pluck('envelope')
  expect(told.received.map(({ body }) => body)).toEqual(stored)
})

it('an earlier move that this pod has received itself is listed with the old address', async () => {
  for (const { address } of [anna, bella]) await discoverPerson(pod, address)
  const envelope = envelopeOfMove(anna, bella)
  expect(await receive(pod, { envelope, acceptedAt: new Date() })).toEqual(allStored)
  await importWith({ migrations: [{ old_address: anna.address, envelope }] })
  const listedAddresses = (await listWaitingPods(pod.db)).map(({ oldAddress }) => oldAddress)
  expect([...new Set(listedAddresses)]).toEqual([anna.address, bella.address])
})

it.each([
  { answer: undefined, name: 'was away', minutes: 10 },
  { answer: 503, name: 'answered 503', minutes: 61 },
  { answer: 429, name: 'answered 429', minutes: 61 },
])('a pod that $name gets the earlier move before the newest one', async ({ answer, minutes }) => {
  const away = await addRecordingPod(pod.fakePods, pod, `away-${newGuid().slice(0, 8)}.example:3000`)
  const receiveAt = `${away.host}/receive/public`
  pod.fakePods.script(receiveAt, (_request, response) => {
    if (answer === undefined) response.destroy()
    else response.writeHead(answer).end()
  })
  await importWith({
    contacts: [archivedContact(`carl@${away.host}`)],
    migrations: [{ old_address: anna.address, envelope: envelopeOfMove(anna, bella) }],
  })
  const announcements = () =>
    pod.db('migration_announcements').where({ podId: away.id }).orderBy('migrationId').select('attemptedAt')
  await sendDueAnnouncements(pod, forever)
  expect(await announcements()).toEqual([{ attemptedAt: expect.any(Date) }, { attemptedAt: null }])

  const lastSuccessAt = new Date(Date.now() + 60_000) // a check or a delivery has found it
  if (answer === undefined) await pod.db('pods').where({ id: away.id }).update({ lastSuccessAt })
  const bodies: string[] = []
  pod.fakePods.script(receiveAt, async (request, response) => {
    bodies.push(await text(request))
    response.writeHead(202).end()
  })
  await sendDueAnnouncements(pod.at(new Date(Date.now() + minutes * 60_000)), forever)
  expect(bodies).toEqual(await pod.db('account_migrations').orderBy('id').pluck('envelope'))
})

it('an earlier move is left out if its signatures do not hold, or if it leads to another account', async () => {
  const other = pod.fakePods.person(`other-${newGuid().slice(0, 8)}@a.example`)
  await importWith({
    migrations: [
      { old_address: anna.address, envelope: envelopeOfMove(anna, bella, other) },
      { old_address: anna.address, envelope: envelopeOfMove(anna, other) },
      { old_address: anna.address, envelope: envelopeOfMove({ ...anna, privateKey: other.privateKey }, bella) },
      { old_address: other.address, envelope: envelopeOfMove(anna, bella) },
      { old_address: anna.address, envelope: 'no envelope' },
      'no move',
    ],
  })
  expect(await moves()).toEqual([bella.address])
})

it('an archive of an account that cannot be examined moves no earlier identity', async () => {
  const person = await addRemotePerson(pod, anna.address, anna)
  const invented = { ...bella, address: `bella@unreachable-${newGuid().slice(0, 8)}.example` }
  const move = { from: anna.address, to: invented.address }
  const entity: AccountMigrationEntity = {
    type: 'account_migration',
    author: invented.address,
    profile: profileOf(invented, { first_name: 'Bella', public: false }),
    signature: signMigration(move, anna.privateKey), // as the pod of bella has sent it to pods of Friendica
    old_identity: anna.address,
    remote_photo_path: undefined,
  }
  await importWith(
    {
      migrations: [
        { old_address: anna.address, envelope: envelopeOf(invented, entity) },
        { old_address: anna.address, envelope: envelopeOfMove(anna, invented) },
      ],
    },
    invented,
  )
  expect(await moves()).toEqual([invented.address])
  expect(await pod.db('people').where({ id: person.id }).first()).toMatchObject({ closedAt: null })
})

it('an earlier move whose envelope the newer identity has signed is left out', async () => {
  await addRemotePerson(pod, anna.address, anna)
  const entity: AccountMigrationEntity = {
    type: 'account_migration',
    author: bella.address,
    profile: profileOf(bella, { first_name: 'Bella', public: false }),
    signature: signMigration({ from: anna.address, to: bella.address }, anna.privateKey),
    old_identity: anna.address,
    remote_photo_path: undefined,
  }
  await importWith({ migrations: [{ old_address: anna.address, envelope: envelopeOf(bella, entity) }] })
  expect(await moves()).toEqual([bella.address])
})

it('an import subscribes to no post that it fetches, and follows no links of it', async () => {
  const carl = pod.fakePods.person(`carl-${newGuid().slice(0, 8)}@c.example`)
  const post = postBy(carl, { text: `See diaspora://${carl.address}/post/${newGuid()}` })
  pod.fakePods.script(`b.example/fetch/post/${post.guid}`, (_request, response) => {
    response.setHeader('content-type', 'application/magic-envelope+xml').end(envelopeOf(carl, post))
  })
  await addRemotePerson(pod, carl.address, carl)
  const done = await importWith({
    relayables: [archivedRelayable(commentBy(bella, post))],
    post_subscriptions: [post.guid],
  })
  expect(done?.counts).toMatchObject({ relayables: { imported: 1 }, subscriptions: { imported: 1 } })
  expect(await pod.db('outbox').whereIn('name', ['participate', 'fetch-linked'])).toEqual([])
})

it('a move is announced at once to the pods of conversations and of posts in which the person takes part', async () => {
  const carl = await addRemotePerson(
    pod,
    `carl-${newGuid().slice(0, 8)}@carls.example`,
    pod.fakePods.person('carl@carls.example'),
  )
  await addRemotePerson(pod, `dan-${newGuid().slice(0, 8)}@dans.example`, pod.fakePods.person('dan@dans.example'))
  const post = await addPost(pod, carl)
  const conversation = entityToJson({
    ...{ type: 'conversation', author: bella.address, guid: newGuid(), subject: 'Soup', messages: [] },
    ...{ participants: [bella.address, 'erin@erins.example'], created_at: new Date('2020-01-01') },
  })
  const done = await importWith({
    relayables: [archivedRelayable(commentBy(bella, post))],
    conversations: [conversation],
  })
  expect(done?.counts).toMatchObject({ relayables: { imported: 1 }, conversations: { imported: 1 } })
  const waves = await pod
    .db('migration_announcements')
    .join('pods', 'pods.id', 'pod_id')
    .whereIn('host', ['carls.example', 'dans.example', 'erins.example'])
    .orderBy('host')
    .select('host', 'wave')
  expect(waves).toEqual([
    { host: 'carls.example', wave: 1 },
    { host: 'dans.example', wave: 2 },
    { host: 'erins.example', wave: 1 },
  ])
})
