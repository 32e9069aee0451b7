import { createPublicKey } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { writeArchive } from '../../../src/federation/archives/write-archive.js'
import { openEnvelopeCache } from '../../../src/federation/outbound/envelope-cache.js'
import { serveEntity } from '../../../src/federation/outbound/serve-entity.js'
import { Person } from '../../../src/persistence/models/person.js'
import { entityFromJson, entityToJson } from '../../../src/protocol/entities/entity-json.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { isRelayable } from '../../../src/protocol/entities/registry.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { verifyRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { addPost } from '../../support/databases/rows.js'
import { archivedPost, archiveOf, writeArchiveFile } from '../../support/federation/archives.js'
import { commentBy, likeBy, pollWith, postBy, profileOf, voteBy } from '../../support/federation/entities.js'
import { signedBy } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let folder: string
let al: LocalUser
let alice: RemotePerson
let carl: RemotePerson
let dora: RemotePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-kept-signatures-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder } }
  ;({ al } = await pod.localUsers('al'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty('account_migrations, imports, posts, tombstones, outbox, outbound_messages')
  ;({ alice, carl, dora } = await pod.remotePeople('alice', 'carl', 'dora'))
})

async function importArchive(posts: readonly StatusMessageEntity[], others: readonly unknown[]) {
  const archive = archiveOf(alice, { user: { posts: posts.map((post) => archivedPost(post)) }, others })
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file: await writeArchiveFile(join(folder, newGuid()), archive),
    photosFile: undefined,
    user: { userId: al.userId, personId: al.id, address: al.address, username: 'al' },
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: alice.address,
  })
  const done = await runImport(pod, id, { signal: new AbortController().signal, makePicture: makeImportedPicture })
  return done?.counts.others_relayables
}

/** What others have written, in the next archive of the account: guids by the validity of their signatures. */
async function exportedOthers(...authors: readonly Pick<FakePerson, 'address' | 'publicKey'>[]) {
  let text = ''
  let leftOut = 0
  const countLeftOut = (count: number) => {
    leftOut += count
  }
  const options = { username: 'al', shouldIncludeKey: true, upTo: pod.now(), countLeftOut }
  for await (const piece of writeArchive(pod, options)) text += piece
  const valid = JSON.parse(text).others_data.relayables.flatMap((item: unknown) => {
    const entity = entityFromJson(item, new Date())
    if (!isRelayable(entity)) throw new Error('The item is no relayable.')
    const author = authors.find(({ address }) => address === entity.author)
    if (author === undefined) return []
    return verifyRelayable(entity, createPublicKey(author.publicKey)) ? [entity.guid] : []
  })
  return { valid: new Set(valid), leftOut }
}

it('comments, likes and votes that this pod knew before a move are exported with the signatures of the archive', async () => {
  const poll = pollWith('yes', 'no')
  const [answer = poll] = poll.poll_answers
  const post = postBy(alice, { poll })
  const others = [commentBy(carl, post, { text: '  Nice ' }), likeBy(carl, post), voteBy(dora, poll, answer)]
  const messages = [post, ...others].map((entity) => publicMessage(alice, entity))
  for (const message of messages) expect(await receive(pod, message)).toEqual(allStored)
  expect(await pod.db('comments').pluck('author_signature')).toEqual([null])

  const items = others.map((entity) => entityToJson(entity))
  expect(await importArchive([post], items)).toMatchObject({ found: 3, imported: 0, skipped: 3, refused: 0 })
  expect(await exportedOthers(carl, dora)).toEqual({ valid: new Set(others.map(({ guid }) => guid)), leftOut: 0 })
})

it('the archive adds no signature to content that differs, or that its author has not signed', async () => {
  const post = postBy(alice)
  const other = postBy(alice)
  const known = {
    changed: commentBy(carl, post),
    moved: likeBy(carl, post),
    forged: commentBy(carl, post),
    unsigned: commentBy(carl, post),
  }
  for (const entity of [post, other, ...Object.values(known)]) await receive(pod, publicMessage(alice, entity))

  const { elements: _, ...forged } = known.forged
  const items = [
    commentBy(carl, post, { guid: known.changed.guid, text: 'Another text of the author' }),
    likeBy(carl, other, { guid: known.moved.guid }),
    signedBy(dora, { ...forged, author_signature: undefined }),
    { ...known.unsigned, author_signature: undefined },
  ].map((entity) => entityToJson(entity))
  expect(await importArchive([post, other], items)).toMatchObject({ found: 4, imported: 0, skipped: 4, refused: 0 })
  expect(await pod.db('comments').whereNotNull('authorSignature').pluck('guid')).toEqual([])
  expect(await pod.db('likes').whereNotNull('authorSignature').pluck('guid')).toEqual([])
  expect(await exportedOthers(carl)).toEqual({ valid: new Set(), leftOut: 4 })
})

it('the relayables of authors who have moved are exported with the network ID that they have signed', async () => {
  const post = postBy(alice)
  await importArchive([post], [])
  const comment = commentBy(carl, post)
  expect(await receive(pod, publicMessage(carl, comment))).toEqual(allStored)
  const carla = await pod.addRemotePerson('carla@r.example')
  const migration = {
    type: 'account_migration' as const,
    author: carl.address,
    profile: profileOf(carla),
    signature: signMigration({ from: carl.address, to: carla.address }, carla.privateKey),
    old_identity: carl.address,
    remote_photo_path: undefined,
  }
  expect(await receive(pod, publicMessage(carl, migration))).toEqual(allStored)
  expect(await pod.db('comments').pluck('author_id')).toEqual([carla.id])

  expect(await exportedOthers(carl, carla)).toEqual({ valid: new Set([comment.guid]), leftOut: 0 })

  // Other pods that fetch it verify the same texts.
  const cache = openEnvelopeCache({ envelopes: 1, bytes: 100_000, ageMs: 60_000, concurrentSignatures: 1 })
  const served = await serveEntity(pod, cache, 'comment', comment.guid)
  const people = await Person.query(pod.db)
  const keys = new Map(people.map(({ address, publicKey }) => [address, createPublicKey(publicKey)]))
  expect(verifyEnvelope(served?.kind === 'envelope' ? served.envelope : '', keys, new Date())).toMatchObject({
    ...{ state: 'verified', sender: al.address, signature: 'valid' },
    entity: { guid: comment.guid, author: carl.address },
  })
})

/** The account moves to another pod, and nobody of this pod has needed a signature of it. */
async function moveAway(account: LocalUser, to: RemotePerson): Promise<void> {
  const migration = {
    type: 'account_migration' as const,
    author: account.address,
    profile: profileOf(to),
    signature: signMigration({ from: account.address, to: to.address }, to.privateKey),
    old_identity: account.address,
    remote_photo_path: undefined,
  }
  const privateKey = await loadPrivateKey(pod, account.id)
  expect(await receive(pod, publicMessage({ ...to, address: account.address, privateKey }, migration))).toEqual(
    allStored,
  )
}

/** The entity that this pod serves to others, and its author. */
async function servedComment(guid: string, writer: LocalUser) {
  const cache = openEnvelopeCache({ envelopes: 1, bytes: 100_000, ageMs: 60_000, concurrentSignatures: 1 })
  const served = await serveEntity(pod, cache, 'comment', guid)
  const keys = new Map([al, writer].map(({ address, publicKey }) => [address, createPublicKey(publicKey)]))
  return verifyEnvelope(served?.kind === 'envelope' ? served.envelope : '', keys, new Date())
}

it('comments and likes that an account wrote here before it moved away are signed with its old key when they are needed', async () => {
  const bo = await addLocalUser(pod, `bo${newGuid().slice(0, 8)}`)
  const post = await addPost(pod, al, { public: true })
  const [comment, like] = [newGuid(), newGuid()]
  await pod.db('comments').insert({ guid: comment, authorId: bo.id, postId: post.id, text: 'Before the move' })
  await pod.db('likes').insert({ guid: like, authorId: bo.id, postId: post.id, positive: true })
  await moveAway(bo, carl)
  expect(await pod.db('likes').where({ guid: like }).pluck('author_id')).toEqual([carl.id])
  await pod.db('likes').update({ writtenById: null }) // as a move before writers were noted has left it

  expect(await servedComment(comment, bo)).toMatchObject({
    ...{ state: 'verified', sender: al.address, signature: 'valid' },
    entity: { guid: comment, author: bo.address },
  })
  expect(await exportedOthers(bo)).toEqual({ valid: new Set([comment, like]), leftOut: 0 })
})

it('what two accounts wrote here before both moved to one person is signed with the key of its writer', async () => {
  const bo = await addLocalUser(pod, `bo${newGuid().slice(0, 8)}`)
  const bea = await addLocalUser(pod, `bea${newGuid().slice(0, 8)}`)
  const post = await addPost(pod, al, { public: true })
  const [first, second, like, served] = [newGuid(), newGuid(), newGuid(), newGuid()]
  const comments = [
    { guid: first, authorId: bo.id },
    { guid: second, authorId: bea.id },
    { guid: served, authorId: bea.id },
  ]
  await pod.db('comments').insert(comments.map((row) => ({ ...row, postId: post.id, text: 'Before the move' })))
  await pod.db('likes').insert({ guid: like, authorId: bea.id, postId: post.id, positive: true })
  await moveAway(bo, carl)
  await moveAway(bea, carl)
  expect(new Set(await pod.db('comments').pluck('author_id'))).toEqual(new Set([carl.id]))

  expect(await servedComment(served, bea)).toMatchObject({
    ...{ state: 'verified', sender: al.address, signature: 'valid' },
    entity: { guid: served, author: bea.address },
  })
  expect(await exportedOthers(bo)).toEqual({ valid: new Set([first]), leftOut: 0 })
  expect(await exportedOthers(bea)).toEqual({ valid: new Set([second, served, like]), leftOut: 0 })
})

it('an export looks up the accounts that have moved away once for all comments, not once for each author', async () => {
  const post = await addPost(pod, al, { public: true })
  const guids: string[] = []
  for (const person of [carl, dora, alice]) {
    const account = await addLocalUser(pod, `bo${newGuid().slice(0, 8)}`)
    const guid = newGuid()
    await pod.db('comments').insert({ guid, authorId: account.id, postId: post.id, text: 'Before the move' })
    await moveAway(account, person)
    guids.push(guid)
  }
  const lookups: string[] = []
  const note = ({ sql }: { readonly sql: string }) => {
    if (sql.includes('written_by_id')) lookups.push(sql)
  }
  pod.db.on('query', note)
  const { leftOut } = await exportedOthers()
  pod.db.off('query', note)
  expect([leftOut, lookups.length]).toEqual([0, 1])
  expect(await pod.db('comments').whereIn('guid', guids).whereNull('authorSignature')).toEqual([])
})
