import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import yazl from 'yazl'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { listImports } from '../../../src/domain/archives/imports.js'
import { beginSharing } from '../../../src/domain/contacts/contacts.js'
import { LIST_LIMITS } from '../../../src/domain/limits.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { importedPhotoFile } from '../../../src/domain/photos/imported-photos.js'
import { removeOrphanedFiles } from '../../../src/domain/photos/orphaned-files.js'
import { listPhotoFiles } from '../../../src/domain/photos/photos.js'
import { findPostIfVisible } from '../../../src/domain/posts/visible-posts.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { checkArchive } from '../../../src/federation/archives/imports/check-archive.js'
import { retryItems } from '../../../src/federation/archives/imports/retry-items.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { cancelImport, setImportState } from '../../../src/federation/archives/imports/stop-import.js'
import { IMPORT_LIMITS } from '../../../src/federation/archives/limits.js'
import { sendDueAnnouncements } from '../../../src/federation/archives/moves/send-announcements.js'
import { openPlainFile } from '../../../src/federation/archives/reading/archive-file.js'
import { readPhotoOfZip } from '../../../src/federation/archives/reading/archive-photos.js'
import { spoolArchive } from '../../../src/federation/archives/reading/spool-archive.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import {
  type ArchiveImport,
  findArchiveImport,
  type ImportSection,
  saveImportProgress,
} from '../../../src/persistence/archives/imports.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Tombstone } from '../../../src/persistence/models/tombstone.js'
import { DELIVERY_PRIORITY } from '../../../src/persistence/outbound/delivery-priority.js'
import { takeDueDeliveries } from '../../../src/persistence/outbound/due-deliveries.js'
import { insertDeliveries } from '../../../src/persistence/outbound/insert-deliveries.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { entityToJson } from '../../../src/protocol/entities/entity-json.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { prune } from '../../../workers/handlers/maintenance.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { IMPORT_TASKS } from '../../../workers/run-imports.js'
import { repeatTransactions } from '../../support/databases/repeated-transactions.js'
import { addPost } from '../../support/databases/rows.js'
import {
  archivedContact,
  archivedPost,
  archivedRelayable,
  archiveOf,
  privateKeyPem,
  writeArchiveFile,
} from '../../support/federation/archives.js'
import { commentBy, likeBy, photoBy, pollWith, postBy, reshareBy, voteBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, receive } from '../../support/federation/inbound-messages.js'
import { addRecordingPod, writeMessage } from '../../support/federation/recording-pod.js'
import { plain, twoColours } from '../../support/files/pictures.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let folder: string
let al: LocalUser
let bob: LocalUser
let old: FakePerson
let carl: RemotePerson
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-imports-'))
  const uploadsDir = join(folder, 'uploads')
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir }, pictures: openFolderPictures(uploadsDir) }
  await pod.pictures.check()
  ;({ al, bob } = await pod.localUsers('al', 'bob'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})
beforeEach(async () => {
  await pod.empty(
    'account_migrations, imports, claimed_followers, posts, photos, contacts, notifications, blocks, tombstones, outbox, outbound_messages, tag_followings, participations, pod_rules',
  )
  await pod.db('aspects').whereIn('name', ['Garden people', 'New ones', 'Old friends']).delete()
  await pod.db('pods').update({ software: null, blockedAt: null })
  ;({ carl } = await pod.remotePeople('carl'))
  old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
})

const user = ({ userId, id: personId, address }: LocalUser) => ({
  userId,
  personId,
  address,
  username: address.split('@')[0] ?? '',
})
const forever = new AbortController().signal

async function begin(
  archive: unknown,
  options: { move?: boolean; photos?: string; as?: LocalUser } = {},
): Promise<ArchiveImport> {
  const file = await writeArchiveFile(join(folder, newGuid()), archive)
  return beginImport(pod, COMMAND_ACTOR, {
    file,
    photosFile: options.photos,
    user: user(options.as ?? al),
    options: { contacts: true, content: true, settings: true, profile: true },
    moveFrom: options.move === false ? undefined : old.address,
  })
}

async function importAll(archive: unknown, options: Parameters<typeof begin>[1] = {}): Promise<ArchiveImport> {
  const { id } = await begin(archive, options)
  await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
  const done = await findArchiveImport(pod.db, { id })
  if (done === undefined) throw new Error('The import is gone.')
  return done
}

async function runImportTasks(): Promise<void> {
  for (const task of IMPORT_TASKS) await task(pod, forever)
}

async function blockPod(domain: string): Promise<void> {
  const rule = { domain, port: 443, subdomains: false, state: 'blocked' } as const
  await setPodRule(pod, COMMAND_ACTOR, rule, { reason: 'Spam', confirm: domain })
}

async function check(archive: unknown, photosFile?: string) {
  const file = await writeArchiveFile(join(folder, newGuid()), archive)
  const spooled = await spoolArchive(await openPlainFile(file), { folder: join(folder, newGuid()), maxBytes: 2 ** 30 })
  const photos = photosFile === undefined ? undefined : await openPlainFile(photosFile)
  return checkArchive(pod, { spooled, user: user(al), photosFile: photos, signal: forever })
}

function counts({ counts: sections }: Pick<ArchiveImport, 'counts'>, section: ImportSection) {
  const { imported = 0, skipped = 0, by_reason = {} } = sections[section] ?? {}
  return { imported, skipped, ...by_reason }
}

/** An archive with an item of each kind. */
function fullArchive() {
  const poll = pollWith('yes', 'no')
  const [answer = poll] = poll.poll_answers
  const photo = photoBy(old, { remote_photo_path: 'https://old.example/uploads/images/', remote_photo_name: 'p1.jpg' })
  const posts = {
    public: postBy(old, { text: 'Public #garden', created_at: new Date('2015-05-06T07:08:09Z'), photos: [photo] }),
    poll: postBy(old, { text: `Hi @{Bob; ${bob.address}}`, poll }),
    private: postBy(old, { text: 'Private', public: false }),
  }
  const comment = commentBy(carl, posts.public, { text: 'Nice', created_at: new Date('2016-01-01T00:00:00Z') })
  const own = {
    comment: commentBy(old, posts.public, { text: 'Thanks' }),
    like: likeBy(old, comment, { parent_type: 'Comment' }),
  }
  const archive = archiveOf(old, {
    user: {
      contact_groups: [{ name: 'Garden people' }, { name: 'family' }],
      contacts: [
        archivedContact(carl.address, { contact_groups_membership: ['Garden people', 'New ones'] }),
        archivedContact('fan@fans.example', { receiving: false }),
      ],
      posts: [
        archivedPost(posts.public),
        archivedPost(posts.poll),
        archivedPost(posts.private, { aspects: ['Garden people'] }),
      ],
      followed_tags: ['soup'],
      relayables: [archivedRelayable(own.comment), archivedRelayable(own.like)],
      language: 'en',
    },
    others: [comment, likeBy(carl, posts.public), voteBy(carl, poll, answer)].map((entity) => entityToJson(entity)),
  })
  pod.fakePods.person('fan@fans.example')
  return { archive, posts, own, comment }
}

describe('an import with a move', () => {
  it('stores posts, comments, likes and votes under their guids and times, and sends no notifications', async () => {
    const { archive, posts, own } = fullArchive()
    const done = await importAll(archive)

    expect(done).toMatchObject({ state: 'done', identity: 'proven', sealedKey: null })
    expect(counts(done, 'posts')).toEqual({ imported: 3, skipped: 0 })
    expect(counts(done, 'relayables')).toEqual({ imported: 2, skipped: 0 })
    expect(counts(done, 'others_relayables')).toEqual({ imported: 3, skipped: 0 })
    expect(await pod.db('posts').where({ guid: posts.public.guid }).first()).toMatchObject({
      authorId: al.id,
      createdAt: posts.public.created_at,
      interactedAt: own.comment.created_at,
      commentsCount: 2,
      likesCount: 1,
    })
    expect(await pod.db('photos').select('name', 'remotePath', 'authorId')).toEqual([
      { name: 'p1.jpg', remotePath: 'https://old.example/uploads/images/', authorId: al.id },
    ])
    expect(await pod.db('pollAnswers').where({ voteCount: 1 })).toHaveLength(1)
    expect(await pod.db('comments').where({ likesCount: 1 }).select('authorSignature')).toEqual([
      { authorSignature: expect.any(String) },
    ])
    expect(await pod.rows('notifications', 'outbox', 'outbound_messages')).toEqual([0, 0, 0])
  })

  it('shows an imported private post to its author only', async () => {
    const { archive, posts } = fullArchive()
    await importAll(archive)
    const seenBy = (who: LocalUser) =>
      findPostIfVisible(pod, { ...user(who), scopes: new Set(SCOPES) } as never, posts.private.guid)

    expect(await seenBy(al)).toMatchObject({ guid: posts.private.guid })
    expect(await seenBy(bob)).toBeUndefined()
  })

  it('keeps contacts in their aspects and followers as a claim, and sends them nothing', async () => {
    const done = await importAll(fullArchive().archive)

    expect(counts(done, 'aspects')).toEqual({ imported: 1, skipped: 1 })
    expect(counts(done, 'contacts')).toEqual({ imported: 2, skipped: 0 })
    expect(await pod.db('contacts').select('userId', 'personId', 'sharing', 'receiving')).toEqual([
      { userId: al.userId, personId: carl.id, sharing: false, receiving: true },
    ])
    const names = await pod
      .db('aspectMemberships')
      .join('aspects', 'aspects.id', 'aspectId')
      .orderBy('position')
      .pluck('name')
    expect(names).toEqual(['Garden people', 'New ones'])
    const claimed = await pod
      .db('claimedFollowers')
      .join('people', 'people.id', 'personId')
      .orderBy('address')
      .pluck('address')
    expect(claimed).toEqual([carl.address, 'fan@fans.example'])
    expect(await pod.db('profiles').where({ personId: al.id }).first()).toMatchObject({
      firstName: 'Old',
      bio: 'My *bio*',
    })
  })

  it('closes the old account here and moves its known content', async () => {
    const { archive, posts } = fullArchive()
    const { id } = await pod.addRemotePerson(old.address).catch(() => ({ id: 0 }))
    const known = await pod.db('people').where({ address: old.address }).first()
    await pod.db('people').where({ address: old.address }).update({ publicKey: old.publicKey })
    await addPost(pod, { id: known.id ?? id }, { guid: posts.public.guid })
    const done = await importAll(archive)

    expect(counts(done, 'posts')).toEqual({ imported: 2, skipped: 1 })
    expect(await pod.db('people').where({ address: old.address }).first()).toMatchObject({ closedAt: expect.any(Date) })
    expect(await pod.db('posts').where({ authorId: al.id })).toHaveLength(3)
  })

  const aspectsOf = (postId: number) =>
    pod.db('postAspects').join('aspects', 'aspects.id', 'aspectId').where({ postId }).pluck('name')

  it('shares private posts that are known here with the aspects of the archive, once', async () => {
    const { archive, posts } = fullArchive()
    const known = await discoverPerson(pod, old.address)
    const { id } = await addPost(pod, known, { guid: posts.private.guid, public: false })
    expect(counts(await importAll(archive), 'posts')).toEqual({ imported: 2, skipped: 1 })
    expect(await aspectsOf(id)).toEqual(['Garden people'])
    await pod.db('aspects').where({ userId: al.userId, name: 'Garden people' }).delete()
    expect(await importAll(archive)).toMatchObject({ state: 'done', identity: 'moved_here' })
    expect(await aspectsOf(id)).toEqual([])
  })

  it('does not share them with an aspect of the same name in which the account has other people', async () => {
    const { archive, posts } = fullArchive()
    const eve = await pod.addRemotePerson('eve@e.example')
    const aspects = ['Garden people', 'Old friends'].map((name, index) => ({
      userId: al.userId,
      name,
      position: 50 + index,
    }))
    const [garden] = await pod.db('aspects').insert(aspects).returning('id')
    const contact = { userId: al.userId, personId: eve.id, receiving: true }
    const [{ id: contactId }] = await pod.db('contacts').insert(contact).returning('id')
    await pod.db('aspectMemberships').insert({ aspectId: garden.id, contactId })
    const known = await discoverPerson(pod, old.address)
    const { id } = await addPost(pod, known, { guid: posts.private.guid, public: false })
    const shared = archivedPost(posts.private, { aspects: ['Garden people', 'old friends'] })
    const members = archive.user['posts'] as readonly object[]
    await importAll({ ...archive, user: { ...archive.user, posts: [...members.slice(0, -1), shared] } })
    expect(await aspectsOf(id)).toEqual(['Old friends'])
  })

  it('counts each item once when its transactions are repeated', async () => {
    const { archive } = fullArchive()
    const repeating = { ...pod, db: repeatTransactions(pod.db) }
    const { id } = await begin(archive)
    const { counts: returned } =
      (await runImport(repeating, id, { signal: forever, makePicture: makeImportedPicture })) ?? {}
    const stored = await findArchiveImport(pod.db, { id })

    for (const section of ['aspects', 'contacts', 'tags', 'profile', 'settings'] as const) {
      const { found, imported = 0, skipped = 0, refused = 0 } = stored?.counts[section] ?? { found: -1 }
      expect({ section, ended: imported + skipped + refused }).toEqual({ section, ended: found })
    }
    expect(returned).toEqual(stored?.counts)
  })

  it('finds everything there when it is repeated, and announces nothing again', async () => {
    const { archive } = fullArchive()
    await importAll(archive)
    const before = await pod.rows(
      'posts',
      'comments',
      'likes',
      'contacts',
      'account_migrations',
      'migration_announcements',
    )
    const again = await importAll(archive)

    expect(again.identity).toBe('moved_here')
    for (const section of ['aspects', 'contacts', 'tags', 'posts', 'relayables', 'others_relayables'] as const) {
      expect({ section, ...counts(again, section) }).toEqual({
        section,
        imported: 0,
        skipped: again.counts[section]?.found,
      })
    }
    expect(
      await pod.rows('posts', 'comments', 'likes', 'contacts', 'account_migrations', 'migration_announcements'),
    ).toEqual(before)
  })

  it('continues at its cursor after an interruption at any point', async () => {
    const { archive } = fullArchive()
    const { id } = await begin(archive)
    const seen = new Set<string>()
    for (let end: ArchiveImport | undefined; end === undefined; ) {
      const stop = new AbortController()
      const reportProgress = ({ section, done }: { section: string; done: number }) => {
        if (seen.has(`${section} ${done}`)) return
        seen.add(`${section} ${done}`)
        stop.abort()
      }
      end = await runImport(pod, id, { signal: stop.signal, reportProgress, makePicture: makeImportedPicture }).catch(
        () => undefined,
      )
    }
    expect(seen.size).toBeGreaterThan(4)
    const done = await findArchiveImport(pod.db, { id })
    expect(done?.counts).toEqual((await importedOnce()).counts)
    expect(await pod.rows('posts', 'comments', 'migration_announcements')).toEqual([3, 2, expect.any(Number)])
  })

  it('ends the same when its process dies after any of its transactions', async () => {
    const { archive } = fullArchive()
    const photos = join(folder, newGuid())
    const zip = new yazl.ZipFile()
    zip.addBuffer(await twoColours().jpeg().toBuffer(), 'p1.jpg')
    zip.end()
    await writeFile(photos, zip.outputStream as Readable)
    const { id } = await begin(archive, { photos })
    const phases = new Set<string>()
    let place = ''
    let survived = 0
    for (let isOver = false; !isOver; ) {
      const dying = { ...pod, db: dieAfterTransaction(pod.db, survived) }
      isOver = await runImport(dying, id, { signal: forever, makePicture: makeImportedPicture }).then(
        () => true,
        () => false,
      )
      const { state, phase = '', lines } = (await findArchiveImport(pod.db, { id })) ?? {}
      expect(state).toBe(isOver ? 'done' : 'running')
      phases.add(phase)
      survived = place === `${phase} ${lines}` ? survived + 1 : 0
      place = `${phase} ${lines}`
      await pod.db('imports').where({ id }).update({ aliveAt: null, attempts: 0 })
    }
    expect([...phases]).toEqual(
      expect.arrayContaining(['photos', 'move', 'marks', 'settings', 'place_photos', 'announce']),
    )
    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'posts')).toEqual({ imported: 3, skipped: 0 })
    expect(counts(done ?? { counts: {} }, 'relayables')).toEqual({ imported: 2, skipped: 0 })
    expect(counts(done ?? { counts: {} }, 'others_relayables')).toEqual({ imported: 3, skipped: 0 })
    expect(await pod.rows('posts', 'comments', 'account_migrations', 'outbox')).toEqual([3, 2, 1, 0])
    expect(await pod.db('posts').max('comments_count as comments').max('likes_count as likes').first()).toEqual({
      comments: 2,
      likes: 1,
    })
    expect(await pod.db('photos').pluck('name')).toEqual([`${al.guid}-p1.jpg`])
    const { remotePhotoPath } = await pod.db('account_migrations').first()
    expect(remotePhotoPath).toBe(`https://pod.example/uploads/images/${al.guid}/`)
    expect(await pod.db('migration_announcements').where({ wave: 1 })).not.toEqual([])
  })

  /** A database that is lost when one more than so many transactions were committed. */
  function dieAfterTransaction(db: Knex, survived: number): Knex {
    let left = survived
    const lost = () => new Error('The process dies.')
    async function transaction<Result>(work: (transaction: Knex.Transaction) => Promise<Result>): Promise<Result> {
      if (left < 0) throw lost()
      const result = await db.transaction(work)
      left -= 1
      if (left < 0) throw lost()
      return result
    }
    return new Proxy(db, {
      get: (target, key, receiver) => (key === 'transaction' ? transaction : Reflect.get(target, key, receiver)),
    })
  }

  /** The same archive without interruption, in an account that is as it was. */
  async function importedOnce(): Promise<ArchiveImport> {
    await pod.empty('account_migrations, imports, claimed_followers, posts, photos, contacts, tag_followings')
    await pod.db('aspects').where({ userId: al.userId }).whereIn('name', ['Garden people', 'New ones']).delete()
    await pod.db('people').where({ address: old.address }).delete()
    return importAll(fullArchive().archive)
  }
})

describe('an import that is stopped', () => {
  /** Runs an import until it reports progress in a section. The import stays unfinished there, without a worker. */
  async function runUntil(id: number, section: string): Promise<void> {
    const stop = new AbortController()
    const reportProgress = (progress: { readonly section: string }) => {
      if (progress.section === section) stop.abort()
    }
    const run = runImport(pod, id, { signal: stop.signal, reportProgress, makePicture: makeImportedPicture })
    await expect(run).rejects.toMatchObject({ name: 'AbortError' })
  }

  const relations = async () => ({
    aspects: await pod.db('aspects').where({ userId: al.userId }).orderBy('id').select('id', 'name'),
    contacts: await pod
      .db('contacts')
      .orderBy(['userId', 'personId'])
      .select('userId', 'personId', 'sharing', 'receiving'),
    memberships: await pod
      .db('aspectMemberships')
      .join('contacts', 'contacts.id', 'contactId')
      .select('aspectId', 'personId'),
    rest: await pod.rows('claimed_followers', 'blocks', 'tag_followings', 'import_changes', 'outbox'),
  })

  /** The account has a contact that the archive puts into another aspect, one that it blocks, and one on this pod. */
  async function archiveOfKnownPeople() {
    const people = await pod.remotePeople('carl', 'dora')
    const { dora } = people
    carl = people.carl
    const [{ id: aspect }] = await pod.db('aspects').where({ userId: al.userId }).orderBy('id').limit(1)
    for (const personId of [carl.id, dora.id]) {
      const [{ id }] = await pod.db('contacts').insert({ userId: al.userId, personId, receiving: true }).returning('id')
      await pod.db('aspectMemberships').insert({ aspectId: aspect, contactId: id })
    }
    const { archive } = fullArchive()
    const contacts = [archivedContact(bob.address), ...(archive.user['contacts'] as object[])]
    return { ...archive, user: { ...archive.user, contacts, blocks: [dora.address], followed_tags: ['soup'] } }
  }

  it('is cancelled before the move, with everything that it has changed', async () => {
    const archive = await archiveOfKnownPeople()
    const before = await relations()
    const { id, uid } = await begin(archive)
    await runUntil(id, 'blocks')
    expect(await relations()).not.toEqual(before)
    await cancelImport(pod, user(al), uid)
    expect(await relations()).toEqual(before)
    expect(await findArchiveImport(pod.db, { id })).toMatchObject({ state: 'cancelled', sealedKey: null })
    expect(await readdir(join(folder, 'uploads', 'imports'))).not.toContain(uid)
    expect(await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })).toBeUndefined()
  })

  it('can only be paused after the move, and then continues at its cursor', async () => {
    const { archive, posts } = fullArchive()
    const { id, uid } = await begin(archive)
    const by = { userId: al.userId, uid }
    await runUntil(id, 'posts')
    await expect(cancelImport(pod, user(al), uid)).rejects.toMatchObject({ reason: 'import_beyond_cancel' })
    await setImportState(pod, by, 'paused')
    expect(await findArchiveImport(pod.db, { id })).toMatchObject({ state: 'paused' })
    expect(await runImport(pod, null, { signal: forever, makePicture: makeImportedPicture })).toBeUndefined()
    await setImportState(pod, by, 'running')
    await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
    const done = await findArchiveImport(pod.db, { id })
    expect(counts({ counts: done?.counts ?? {} }, 'posts')).toEqual({ imported: 3, skipped: 0 })
    expect(await pod.db('posts').where({ guid: posts.public.guid })).toHaveLength(1)
    await expect(setImportState(pod, by, 'paused')).rejects.toMatchObject({ reason: 'import_over' })
  })

  it('does not store a batch that ends after the pause', async () => {
    const claimed = await begin(fullArchive().archive)
    const { uid } = claimed
    await setImportState(pod, { userId: al.userId, uid }, 'paused')
    const progress = { phase: 'contacts', lines: 1, counts: {}, fetchedBytes: 0 }
    expect(await pod.db.transaction((transaction) => saveImportProgress(transaction, claimed, progress))).toBe(false)
    await expect(setImportState(pod, { userId: bob.userId, uid }, 'running')).rejects.toMatchObject({
      reason: 'import_not_found',
    })
  })
})

describe('a message of the new account', () => {
  it('waits until the pod knows the move, and a contact ten minutes longer', async () => {
    const other = await addRecordingPod(pod.fakePods, pod, 'held.example:3000')
    await importAll(archiveOf(old, { user: { contacts: [archivedContact('x@held.example:3000')] } }))
    const write = async (record: 'post' | 'contact') =>
      writeMessage(pod, { senderId: al.id, entity: postBy(al), record, guid: newGuid(), pods: [other.id] })
    await write('post')
    await write('contact')
    const held = async () => {
      await pod.db('deliveries').update({ dueAt: new Date(Date.now() - 1_000) })
      const due = await takeDueDeliveries(pod.db, [{ podId: other.id, limit: 10 }])
      return Object.fromEntries(due.map((delivery) => [delivery.record, delivery.isHeld]))
    }
    expect(await held()).toEqual({ post: true, contact: true })
    await pod.db('migrationAnnouncements').update({ deliveredAt: new Date() })
    expect(await held()).toEqual({ post: false, contact: true })
    await pod.db('migrationAnnouncements').update({ deliveredAt: new Date(Date.now() - 11 * 60_000) })
    expect(await held()).toEqual({ post: false, contact: false })
  })
})

describe('a follower of the old account', () => {
  it('gets public posts, and confirms the contact without a notification', async () => {
    await importAll(archiveOf(old, { user: { contacts: [archivedContact(carl.address, { receiving: false })] } }))
    const post = await addPost(pod, al)
    const { rows } = await pod.db.transaction((transaction) =>
      insertDeliveries(
        transaction,
        {
          record: 'post',
          guid: post.guid,
          verb: 'create',
          senderId: al.id,
          public: true,
          entity: '<x/>',
          priority: DELIVERY_PRIORITY.localUsers,
          trace: null,
        },
        { kind: 'post', postId: post.id },
      ).then(async () => transaction.raw('select pods.host from deliveries join pods on pods.id = pod_id')),
    )
    expect(rows).toEqual([{ host: 'c.example' }])

    await pod
      .db('users')
      .where({ id: al.userId })
      .update({
        followBackAspectId: (await pod.db('aspects').where({ userId: al.userId }).first()).id,
      })
    await pod.db.transaction((transaction) =>
      beginSharing(pod, transaction, [{ userId: al.userId, personId: carl.id }], pod.now()),
    )
    expect(await pod.db('contacts').select('sharing', 'receiving')).toEqual([{ sharing: true, receiving: false }])
    expect(await pod.rows('claimed_followers', 'notifications')).toEqual([0, 0])
  })
})

it('the outcomes of items are kept for 30 days, and claims of followers for 400, without a further import', async () => {
  const { id } = await importAll(archiveOf(old, { user: { contacts: [archivedContact(carl.address)] } }))
  const daysAgo = (days: number) => pod.db.raw('now() - make_interval(days => ?)', [days])
  const setAge = async (itemDays: number, claimDays: number) => {
    await pod
      .db('imports')
      .where({ id })
      .update({ finishedAt: daysAgo(itemDays), retryAt: null })
    await pod.db('claimed_followers').update({ createdAt: daysAgo(claimDays) })
    await prune(pod)
    return pod.rows('import_items', 'claimed_followers')
  }
  const [items = 0] = await setAge(29, 399)
  expect(items).toBeGreaterThan(0)
  expect(await setAge(29, 401)).toEqual([items, 0])
  expect(await setAge(31, 401)).toEqual([0, 0])
})

describe('a comment of the owner under a post of another person', () => {
  const importComment = (post: StatusMessageEntity, others_posts: readonly unknown[] = []) => {
    const archive = archiveOf(old, { user: { relayables: [archivedRelayable(commentBy(old, post))] } })
    return importAll({ ...archive, others_data: { ...archive.others_data, posts: others_posts } })
  }
  const parents = async () => pod.db('posts').pluck('guid')

  it('is refused under a private post that this pod does not know', async () => {
    const post = postBy(carl, { public: false })
    expect(counts(await importComment(post), 'relayables')).toEqual({ imported: 0, skipped: 0, parent_missing: 1 })
    expect(await parents()).toEqual([])
  })

  it('gets its public post from the old pod, and nothing is sent', async () => {
    const post = postBy(carl)
    pod.fakePods.script(`old.example/fetch/post/${post.guid}`, (_request, response) => {
      response.setHeader('content-type', 'application/magic-envelope+xml').end(envelopeOf(carl, post))
    })
    expect(counts(await importComment(post), 'relayables')).toEqual({ imported: 1, skipped: 0 })
    expect(await parents()).toEqual([post.guid])
    expect(await pod.rows('outbox', 'outbound_messages', 'notifications')).toEqual([0, 0, 0])
  })

  it('gets its post from the pod of the author whom the archive names, if the old pod no longer has it', async () => {
    const post = postBy(carl)
    pod.fakePods.serve(carl, post)
    expect(counts(await importComment(post), 'relayables')).toEqual({ imported: 0, skipped: 0, parent_missing: 1 })
    await pod.empty('account_migrations, imports')
    old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
    const done = await importComment(post, [archivedPost(post), 'no post'])

    expect(counts(done, 'relayables')).toEqual({ imported: 1, skipped: 0 })
    expect(await parents()).toEqual([post.guid])
  })

  it('gets it also when it is tried again later', async () => {
    const post = postBy(carl)
    const done = await importComment(post, [archivedPost(post)])
    expect(counts(done, 'relayables')).toEqual({ imported: 0, skipped: 0, parent_missing: 1 })
    pod.fakePods.serve(carl, post)
    await retryItems({ ...pod, now: () => new Date(Date.now() + 2 * 3_600_000) }, forever)

    const later = await findArchiveImport(pod.db, { id: done.id })
    expect(counts(later ?? { counts: {} }, 'relayables')).toEqual({ imported: 1, skipped: 0 })
  })
})

describe('an item for which another pod did not answer', () => {
  it('is imported when the pod answers later, at most four times over weeks', async () => {
    const later = new Date(Date.now() + 1_000)
    let ahead = 0
    const clock = { ...pod, now: () => new Date(later.getTime() + ahead * 3_600_000) }
    const post = postBy(old, { text: 'Public' })
    const eve = pod.fakePods.person(`eve-${newGuid().slice(0, 8)}@eves.example`)
    const unsigned = archivedRelayable(commentBy(eve, post, { text: 'Unsigned' }))
    pod.fakePods.script('eves.example/.well-known/webfinger', (_request, response) => void response.destroy())
    const archive = archiveOf(old, {
      user: { posts: [archivedPost(post)], contacts: [archivedContact(eve.address, { sharing: false })] },
      others: [unsigned, entityToJson(commentBy(eve, post, { text: 'Signed' }))],
    })
    const { id } = await begin(archive)
    await runImport(clock, id, { signal: forever, makePicture: makeImportedPicture })
    const found = async () => (await findArchiveImport(pod.db, { id })) ?? { counts: {} }
    expect(counts(await found(), 'contacts')).toEqual({ imported: 0, skipped: 0, not_found: 1 })
    expect(counts(await found(), 'others_relayables')).toEqual({ imported: 0, skipped: 0, author_unknown: 2 })

    await retryItems(clock, forever)
    expect((await findArchiveImport(pod.db, { id }))?.retries).toBe(0)
    ahead = 1.1
    await retryItems(clock, forever)
    expect(counts(await found(), 'contacts')).toEqual({ imported: 0, skipped: 0, not_found: 1 })
    pod.fakePods.script('eves.example/.well-known/webfinger', (_request, response) => {
      response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify(pod.fakePods.webFinger(eve)))
    })
    ahead += 24.1
    await retryItems(clock, forever)
    expect(counts(await found(), 'contacts')).toEqual({ imported: 1, skipped: 0 })
    expect(counts(await found(), 'others_relayables')).toEqual({ imported: 1, skipped: 0, signature_missing: 1 })
    expect(await pod.db('comments').pluck('text')).toEqual(['Signed'])
    expect((await findArchiveImport(pod.db, { id }))?.retries).toBe(2)
    for (const hours of [169, 721, 721]) {
      ahead += hours
      await retryItems(clock, forever)
    }
    expect(await pod.db('imports').where({ id }).first()).toMatchObject({ retryAt: null })
  })
})

describe('the lists of an import that has ended', () => {
  const imports = () => join(pod.config.uploadsDir, 'imports')
  const later = (hours: number) => ({ ...pod, now: () => new Date(Date.now() + hours * 3_600_000) })
  const run = (id: number) => runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })

  it('are deleted although its process died after the last step', async () => {
    const { id, uid } = await begin(archiveOf(old))
    await pod.db.raw(
      `create function die() returns trigger language plpgsql as $$ begin raise 'The process dies.'; end $$`,
    )
    await pod.db.raw(
      `create trigger die before update of retry_at on imports for each row when (old.state = 'done') execute function die()`,
    )
    await expect(run(id)).rejects.toThrow('The process dies.')
    await pod.db.raw('drop function die cascade')
    expect(await findArchiveImport(pod.db, { id })).toMatchObject({ state: 'done' })
    expect(await readdir(imports())).toContain(uid)

    await retryItems(later(0.5), forever)
    expect(await readdir(imports())).toContain(uid)
    await retryItems(later(1.1), forever)
    expect(await readdir(imports())).not.toContain(uid)
    expect(await pod.db('imports').where({ id }).first()).toMatchObject({ state: 'done', retryAt: null })
  })

  it('are kept although a process died between the deletion of all items and the rename of the chosen ones', async () => {
    const { id, uid } = await begin(archiveOf(old, { user: { contacts: [archivedContact('x@nobody.example')] } }))
    await run(id)
    await rename(join(imports(), uid), join(imports(), `${uid}-kept`))
    pod.fakePods.person('x@nobody.example')
    await retryItems(later(1.1), forever)
    expect(counts((await findArchiveImport(pod.db, { id })) as ArchiveImport, 'contacts')).toMatchObject({
      imported: 1,
    })
    expect((await readdir(imports())).filter((name) => name.startsWith(uid))).toEqual([])
  })

  it('are deleted later if a process left them, and those of an archive without an import after a week', async () => {
    const unfinished = await begin(archiveOf(old))
    const failed = await begin(archiveOf(old), { as: bob, move: false })
    await pod
      .db('imports')
      .where({ id: failed.id })
      .update({ state: 'failed', finishedAt: new Date(Date.now() - 7_200_000) })
    const [young, oldest] = [newGuid(), newGuid()]
    for (const name of [young, oldest, `${failed.uid}-replaced`]) await mkdir(join(imports(), name))
    const week = new Date(Date.now() - 8 * 86_400_000)
    await utimes(join(imports(), oldest), week, week)

    await runImportTasks()
    const names = new Set(await readdir(imports()))
    const found = [unfinished.uid, young, failed.uid, `${failed.uid}-replaced`, oldest].filter((name) =>
      names.has(name),
    )
    expect(found).toEqual([young])
  })
})

async function bytesOf(zip: yazl.ZipFile): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

describe('the photos of an archive', () => {
  it('are found by their old names, made anew, and only those that the archive names', async () => {
    const picture = await twoColours().png().toBuffer()
    const zip = new yazl.ZipFile()
    const add = (bytes: Buffer, name: string, options = {}) => zip.addBuffer(bytes, name, options)
    for (const name of ['p1.png', 'me.png', 'foreign.png']) add(picture, name)
    add(Buffer.from('no picture'), 'p2.png')
    add(picture, 'link.png', { mode: 0o120777 })
    zip.end()
    const chunks: Buffer[] = []
    for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer)
    const escaping = Buffer.concat(chunks).toString('latin1').replaceAll('foreign.png', '../evil.png')
    const photos = join(folder, newGuid())
    await writeFile(photos, Buffer.from(escaping, 'latin1'))

    const archive = archiveOf(old, {
      user: {
        profile: {
          entity_type: 'profile',
          entity_data: { author: old.address, image_url: 'https://old.example/uploads/images/thumb_large_me.png' },
        },
        posts: ['p1.png', 'p2.png', 'link.png'].map((name) =>
          archivedPost(postBy(old, { photos: [photoBy(old, { remote_photo_name: name })] })),
        ),
      },
    })
    expect((await check(archive, photos)).photos).toEqual({ named: 4, found: 3, missing: 1, notNamed: 2 })
    const done = await importAll(archive, { photos })

    expect(counts(done, 'photos')).toEqual({ imported: 2, skipped: 0, photo_unusable: 1, photo_file_missing: 1 })
    const names = await pod.db('photos').whereNull('remotePath').orderBy('name').pluck('name')
    expect(names).toEqual([`${al.guid}-me.png`, `${al.guid}-p1.png`])
    expect(await pod.pictures.find(`thumb_small_${al.guid}-p1.png`)).toBeDefined()
    const stored = await pod.db('accountMigrations').where({ oldAddress: old.address }).first()
    expect(stored.remotePhotoPath).toBe(`https://pod.example/uploads/images/${al.guid}/`)
    expect(importedPhotoFile(al.guid, 'thumb_small_p1.png')).toBe(`thumb_small_${al.guid}-p1.png`)
    const { imageUrl } = await pod.db('profiles').where({ personId: al.id }).first()
    expect(imageUrl).toBe(`https://pod.example/uploads/images/thumb_large_${al.guid}-me.png`)
  })

  it('are not read from an encrypted entry', async () => {
    const zip = new yazl.ZipFile()
    zip.addBuffer(await twoColours().png().toBuffer(), 'sealed.png')
    zip.end()
    const bytes = await bytesOf(zip)
    const flagsOf = (signature: string, offset: number) => bytes.indexOf(Buffer.from(signature, 'latin1')) + offset
    for (const at of [flagsOf('PK\x03\x04', 6), flagsOf('PK\x01\x02', 8)]) bytes.writeUInt8(bytes.readUInt8(at) | 1, at)
    const photos = join(folder, newGuid())
    await writeFile(photos, bytes)
    const photo = photoBy(old, { remote_photo_name: 'sealed.png', remote_photo_path: 'https://gone.example/' })
    const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: [photo] }))] } })

    expect((await check(archive, photos)).photos).toMatchObject({ named: 1, found: 0, missing: 1 })
    const done = await importAll(archive, { photos })
    expect(counts(done, 'photos')).toEqual({ imported: 0, skipped: 0, photo_file_missing: 1 })
  })

  it('are not read from an entry that is larger than a picture may be', async () => {
    const picture = await twoColours().png().toBuffer()
    const zip = new yazl.ZipFile()
    zip.addBuffer(picture, 'large.png')
    zip.end()
    const photos = join(folder, newGuid())
    await writeFile(photos, await bytesOf(zip))
    const photo = photoBy(old, { remote_photo_name: 'large.png' })
    const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: [photo] }))] } })
    const { id } = await begin(archive, { photos })
    const strict = { ...pod, config: { ...pod.config, photoBytes: picture.length / 8 } }
    await runImport(strict, id, { signal: forever, makePicture: makeImportedPicture })

    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'photos')).toEqual({ imported: 0, skipped: 0, photo_unusable: 1 })
  })

  it('of two people do not collide, also if they have the same names', async () => {
    const importOf = async (as: LocalUser, colour: Buffer) => {
      old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
      const zip = new yazl.ZipFile()
      zip.addBuffer(colour, 'same.png')
      zip.end()
      const photos = join(folder, newGuid())
      await writeFile(photos, await bytesOf(zip))
      const photo = photoBy(old, { remote_photo_name: 'same.png' })
      const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: [photo] }))] } })
      expect(counts(await importAll(archive, { photos, as }), 'photos')).toEqual({ imported: 1, skipped: 0 })
    }
    const pictures = await Promise.all([1, 2].map((width) => plain(width, 2).png().toBuffer()))
    await importOf(al, pictures[0] ?? Buffer.alloc(0))
    await importOf(bob, pictures[1] ?? Buffer.alloc(0))

    const stored = [al, bob].map(({ guid }) => importedPhotoFile(guid, 'same.png'))
    expect(await pod.db('photos').whereNull('remotePath').orderBy('id').pluck('name')).toEqual(stored)
    const [first, second] = await Promise.all(stored.map((file) => pod.pictures.read(file)))
    expect(first?.equals(second ?? Buffer.alloc(0))).toBe(false)
  })

  it('are fetched from the old pod without a zip, and from no other one', async () => {
    const picture = await twoColours().png().toBuffer()
    for (const host of ['old.example', 'pictures.example']) {
      pod.fakePods.script(`${host}/uploads/images/old-1.png`, (_request, response) => void response.end(picture))
      pod.fakePods.script(`${host}/uploads/images/old-2.png`, (_request, response) => void response.end(picture))
    }
    const photoAt = (host: string, name: string) =>
      photoBy(old, { remote_photo_path: `https://${host}/uploads/images/`, remote_photo_name: name })
    const photos = [photoAt('old.example', 'old-1.png'), photoAt('pictures.example', 'old-2.png')]
    const done = await importAll(archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos }))] } }))

    expect(counts(done, 'photos')).toEqual({ imported: 1, skipped: 0, photo_file_missing: 1 })
    expect(await pod.db('photos').orderBy('name').select('name', 'remotePath')).toEqual([
      { name: `${al.guid}-old-1.png`, remotePath: null },
      { name: 'old-2.png', remotePath: 'https://pictures.example/uploads/images/' },
    ])
    expect(pod.fakePods.requests.filter((request) => request.endsWith('/old-2.png'))).toEqual([])
  })

  it('are fetched up to the bytes that a zip may have, over all attempts together', async () => {
    const picture = await twoColours().png().toBuffer()
    const entities = ['a.png', 'b.png', 'c.png'].map((name) => {
      pod.fakePods.script(`old.example/uploads/images/${name}`, (_request, response) => void response.end(picture))
      return photoBy(old, { remote_photo_path: 'https://old.example/uploads/images/', remote_photo_name: name })
    })
    const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: entities }))] } })
    const { id } = await begin(archive)
    const run = (config: Partial<FederationPod['config']>, signal = forever) =>
      runImport({ ...pod, config: { ...pod.config, ...config } }, id, {
        signal,
        makePicture: makeImportedPicture,
        reportProgress: ({ section }) => section === 'photos' && stop.abort(),
      })
    const stop = new AbortController()
    const requests = () => pod.fakePods.requests.filter((request) => /old.example.*[abc].png$/.test(request)).length

    await expect(run({}, stop.signal)).rejects.toThrow()
    const { fetchedBytes } = await pod.db('imports').where({ id }).first()
    expect([requests(), fetchedBytes > picture.length]).toEqual([1, true])
    await run({ importPhotoBytes: fetchedBytes + 1 })
    expect(requests()).toBe(2)
    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'photos')).toEqual({ imported: 2, skipped: 0, photo_file_missing: 1 })
  })

  it('are stored up to the limit of the account, also in a later attempt', async () => {
    const picture = await twoColours().png().toBuffer()
    const names = ['q1.png', 'q2.png', 'q3.png', 'q4.png']
    const zip = new yazl.ZipFile()
    for (const name of names.slice(0, 3)) zip.addBuffer(picture, name)
    zip.end()
    const photos = join(folder, newGuid())
    await writeFile(photos, await bytesOf(zip))
    const entities = names.map((name) =>
      photoBy(old, { remote_photo_path: 'https://old.example/uploads/images/', remote_photo_name: name }),
    )
    const { id } = await begin(archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: entities }))] } }), {
      photos,
    })
    const stop = new AbortController()
    const run = (photoQuota: number, importPhotoBytes: number, signal = forever) =>
      runImport({ ...pod, config: { ...pod.config, photoQuota, importPhotoBytes } }, id, {
        signal,
        makePicture: makeImportedPicture,
        reportProgress: ({ section }) => section === 'photos' && stop.abort(),
      })
    await expect(run(1, 0, stop.signal)).rejects.toThrow()
    await run(1, picture.length / 2) // an import may exceed the quota
    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'photos')).toEqual({ imported: 1, skipped: 0, over_quota: 3 })
    expect(pod.fakePods.requests.filter((request) => request.endsWith('/q4.png'))).toEqual([])
  })

  it('are not stored if the disk would be full', async () => {
    const photo = photoBy(old, { remote_photo_path: 'https://old.example/', remote_photo_name: 'large.png' })
    const { id } = await begin(archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: [photo] }))] } }))
    const full = { ...pod, config: { ...pod.config, photoBytes: 2 ** 52 } }
    const run = runImport(full, id, { signal: forever, makePicture: makeImportedPicture })
    await expect(run).rejects.toMatchObject({ fault: 'no_space' })
    expect(await pod.db('imports').where({ id }).first('state', 'error')).toEqual({
      state: 'failed',
      error: 'no_space',
    })
    expect(pod.fakePods.requests.filter((request) => request.endsWith('/large.png'))).toEqual([])
  })

  it('are announced one by one', async () => {
    const picture = await twoColours().png().toBuffer()
    const entities = [
      photoBy(old, { remote_photo_name: 'late.png' }),
      photoBy(old, { remote_photo_name: 'hidden.png' }),
    ]
    const archive = archiveOf(old, {
      user: {
        posts: entities.map((photo, index) =>
          archivedPost(postBy(old, { public: index === 0, photos: [{ ...photo, public: index === 0 }] })),
        ),
      },
    })
    await importAll(archive)
    expect(await pod.db('outbox').where({ name: 'dispatch' })).toEqual([])
    const zip = new yazl.ZipFile()
    for (const { remote_photo_name: name } of entities) zip.addBuffer(picture, name)
    zip.end()
    const photos = join(folder, newGuid())
    await writeFile(photos, zip.outputStream as Readable)
    const done = await importAll(archive, { photos })
    expect(counts(done, 'photos')).toEqual({ imported: 2, skipped: 0 })
    const records = await pod.db('outbox').pluck('data')
    expect(records).toEqual([expect.objectContaining({ record: 'photo', guid: entities[0]?.guid })])
  })
})

describe('the announcement of a move', () => {
  it('goes to all known pods, with the inner signature that each of them verifies', async () => {
    const told = await addRecordingPod(pod.fakePods, pod, 'told.example:3000')
    const refusing = await addRecordingPod(pod.fakePods, pod, 'refusing.example:3000')
    refusing.respondWith(422)
    await pod.db('pods').where({ host: 'c.example' }).update({ software: 'friendica' })
    await importAll(fullArchive().archive)
    const rows = await pod
      .db('migrationAnnouncements')
      .join('pods', 'pods.id', 'podId')
      .orderBy('host')
      .select('host', 'wave')
    expect(rows).toEqual(
      expect.arrayContaining([
        { host: 'c.example', wave: 1 },
        { host: 'fans.example', wave: 1 },
        { host: 'old.example', wave: 1 },
      ]),
    )
    const later = { ...pod, now: () => new Date(Date.now() + 25 * 60 * 60 * 1_000) }
    await sendDueAnnouncements(later, forever)
    expect(told.received.map(({ path }) => path)).toEqual(['/receive/public'])
    expect(refusing.received).toHaveLength(1)
    const results = await pod.db('migrationAnnouncements').join('pods', 'pods.id', 'podId')
    const result = (host: string) => results.find((row) => row.host === host)
    expect(result('told.example')).toMatchObject({ lastStatus: 202, deliveredAt: expect.any(Date) })
    expect(result('refusing.example')).toMatchObject({
      lastStatus: 422,
      attempts: 1,
      deliveredAt: null,
      givenUpAt: null,
    })
    // A pod that does not answer is never refused, only late.
    expect(result('c.example')).toMatchObject({ lastStatus: null, attempts: 0, deliveredAt: null, givenUpAt: null })
    await sendDueAnnouncements(
      { ...pod, now: () => new Date(Date.now() + (5 * 365 + 3) * 24 * 60 * 60 * 1_000) },
      forever,
    )
    expect(told.received).toHaveLength(1)
    expect(await pod.db('migrationAnnouncements').whereNull('deliveredAt').whereNull('givenUpAt')).toEqual([])

    const stored = await pod.db('accountMigrations').where({ oldAddress: old.address }).first()
    const { publicKey } = await pod.db('people').where({ id: al.id }).first()
    const keys = { [old.address]: old.publicKey, [al.address]: publicKey }
    const open = (envelope: string, known: Readonly<Record<string, string>>) =>
      verifyEnvelope(
        envelope,
        new Map(Object.entries(known).map(([address, pem]) => [address, createPublicKey(pem)])),
        new Date(),
      )
    expect(open(stored.envelope, keys)).toMatchObject({
      state: 'verified',
      sender: old.address,
      signature: 'valid',
      entity: { author: old.address, old_identity: old.address, profile: { author: al.address, first_name: 'Old' } },
    })
    expect(open(stored.envelopeFriendica, { ...keys, [al.address]: old.publicKey })).toMatchObject({
      signature: 'valid',
    })
  })
})

it('an archive that names too many hosts is announced at once to the first of them, to the others with all pods', async () => {
  await addRecordingPod(pod.fakePods, pod, 'first.example:3000')
  await addRecordingPod(pod.fakePods, pod, 'last.example:3000')
  const invented = Array.from({ length: IMPORT_LIMITS.announcedHosts }, (_, index) => `https://h${index}.example`)
  const post = archivedPost(postBy(old, { text: 'Public' }), {
    subscribed_pods_uris: ['https://first.example:3000', ...invented, 'https://last.example:3000'],
  })
  await importAll(archiveOf(old, { user: { posts: [post] } }))

  const announcements = await pod
    .db('migrationAnnouncements')
    .join('pods', 'pods.id', 'podId')
    .whereIn('host', ['first.example', 'last.example'])
    .orderBy('host')
    .select('host', 'wave')
  expect(announcements).toEqual([
    { host: 'first.example', wave: 1 },
    { host: 'last.example', wave: 2 },
  ])
})

it('a Friendica pod gets the announcement that is signed by the old key, every other pod the usual one', async () => {
  const friendica = await addRecordingPod(pod.fakePods, pod, 'friendica.example:3000', { software: 'friendica' })
  const diaspora = await addRecordingPod(pod.fakePods, pod, 'diaspora.example:3000', { software: 'diaspora' })
  const unread = await addRecordingPod(pod.fakePods, pod, 'unread.example:3000')
  const hosts = [friendica, diaspora, unread].map(({ host }) => archivedContact(`x@${host}`))
  await importAll(archiveOf(old, { user: { contacts: hosts } }))
  await sendDueAnnouncements({ ...pod, now: () => new Date(Date.now() + 1_000) }, forever)

  const { envelope, envelopeFriendica } = await pod.db('accountMigrations').where({ oldAddress: old.address }).first()
  expect(friendica.received.map(({ body }) => body)).toEqual([envelopeFriendica])
  for (const { received } of [diaspora, unread]) expect(received.map(({ body }) => body)).toEqual([envelope])
})

describe('an import that meets an error', () => {
  const run = (id: number, by: Partial<FederationPod> = {}, stop?: AbortController) =>
    runImport({ ...pod, ...by }, id, {
      signal: stop?.signal ?? forever,
      makePicture: makeImportedPicture,
      reportProgress: ({ section }) => section === 'photos' && stop?.abort(),
    })
  const find = async (id: number) => (await findArchiveImport(pod.db, { id })) as ArchiveImport
  const letWorkerDie = () => pod.db('imports').update({ aliveAt: new Date(Date.now() - 3_600_000) })

  it('fails after three attempts, and does not delay other imports and announcements', async () => {
    const other = await addRecordingPod(pod.fakePods, pod, 'waiting.example:3000')
    await importAll(archiveOf(old, { user: { contacts: [archivedContact('x@waiting.example:3000')] } }))
    old = pod.fakePods.person(`alice-${newGuid().slice(0, 8)}@old.example`)
    const bad = await begin(archiveOf(old), { as: bob })
    await pod
      .db('imports')
      .where({ id: bad.id })
      .update({ sealedKey: Buffer.from('unreadable') })
    const good = await begin(archiveOf(old), { move: false })

    await runImportTasks()
    expect(other.received.map(({ path }) => path)).toEqual(['/receive/public'])
    await runImportTasks()
    expect(await find(good.id)).toMatchObject({ state: 'done' })
    expect(await find(bad.id)).toMatchObject({ state: 'running', phase: 'move', attempts: 1 })
    await letWorkerDie()
    await runImportTasks()
    const errors = vi.spyOn(pod.log, 'error')
    await letWorkerDie()
    await runImportTasks()
    expect(await find(bad.id)).toMatchObject({ state: 'failed', error: 'crashed', sealedKey: null })
    expect(errors.mock.calls).toEqual([[expect.objectContaining({ reason: 'crashed' }), 'archive import failed']])
    expect(await readdir(join(pod.config.uploadsDir, 'imports'))).not.toContain(bad.uid)
    errors.mockRestore()
  })

  it('fails also if its process dies each time, and a stopped process does not count', async () => {
    const { id } = await begin(archiveOf(old))
    const stopped = new AbortController()
    stopped.abort()
    await expect(run(id, {}, stopped)).rejects.toThrow()
    expect(await find(id)).toMatchObject({ attempts: 0 })
    await pod.db('imports').update({ attempts: 3 })
    expect(await run(id)).toMatchObject({ state: 'failed', error: 'crashed' })
  })

  it('throws the first error, also if the database is away then', async () => {
    const { id } = await begin(archiveOf(old, { user: { language: 'en' } }), { move: false })
    let isAway = false
    const locales = new Proxy(pod.locales, {
      get() {
        isAway = true
        throw new Error('The first error.')
      },
    })
    const db = new Proxy(pod.db, {
      apply(target, self, args) {
        if (isAway) throw new Error('The database is away.')
        return Reflect.apply(target as never, self, args)
      },
    })
    await expect(run(id, { db, locales })).rejects.toThrow('The first error.')
    await letWorkerDie()
    expect(await run(id)).toMatchObject({ state: 'done' })
  })

  it('continues in the settings if it does not move', async () => {
    const archive = archiveOf(old, { user: { language: 'en', followed_tags: ['soup'] } })
    const { id } = await begin(archive, { move: false })
    const locales = new Proxy(pod.locales, {
      get() {
        throw new Error('The process dies.')
      },
    })
    await expect(run(id, { locales })).rejects.toThrow('The process dies.')
    expect(await find(id)).toMatchObject({ phase: 'settings' })
    await letWorkerDie()
    await run(id)
    expect(counts(await find(id), 'tags')).toEqual({ imported: 1, skipped: 0 })
    expect(counts(await find(id), 'profile')).toEqual({ imported: 1, skipped: 0 })
  })

  it('counts photos that are missing in the zip once', async () => {
    const zip = new yazl.ZipFile()
    zip.addBuffer(await twoColours().png().toBuffer(), 'found.png')
    zip.end()
    const photos = join(folder, newGuid())
    await writeFile(photos, zip.outputStream as Readable)
    const entities = ['found.png', 'missing.png'].map((name) => photoBy(old, { remote_photo_name: name }))
    const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: entities }))] } })
    const { id } = await begin(archive, { photos })
    await expect(run(id, {}, new AbortController())).rejects.toThrow()
    expect(await find(id)).toMatchObject({ phase: 'photos', lines: 1 })
    await run(id)
    expect(counts(await find(id), 'photos')).toEqual({ imported: 1, skipped: 0, photo_file_missing: 1 })
  })
})

describe('the file of a photo', () => {
  /** An import of a zip with one photo, and the name of its file here. */
  async function beginWithPhoto() {
    const zip = new yazl.ZipFile()
    zip.addBuffer(await twoColours().png().toBuffer(), 'own.png')
    zip.end()
    const photos = join(folder, newGuid())
    await writeFile(photos, zip.outputStream as Readable)
    const name = importedPhotoFile(al.guid, 'own.png')
    await pod.pictures.delete(listPhotoFiles(name))
    const photo = photoBy(old, { remote_photo_name: 'own.png', remote_photo_path: 'https://gone.example/' })
    const archive = archiveOf(old, { user: { posts: [archivedPost(postBy(old, { photos: [photo] }))] } })
    return { ...(await begin(archive, { photos })), name, archive, photos }
  }

  async function run(id: number, { stopAt, ...by }: Partial<FederationPod> & { readonly stopAt?: string } = {}) {
    const stop = new AbortController()
    const reportProgress = ({ section }: { readonly section: string }) => section === stopAt && stop.abort()
    const options = { signal: stop.signal, reportProgress, makePicture: makeImportedPicture }
    await runImport({ ...pod, ...by }, id, options).catch((error: Error) => error)
    await pod.db('imports').update({ aliveAt: new Date(Date.now() - 3_600_000) })
  }

  const photosOf = async (id: number) => counts((await findArchiveImport(pod.db, { id })) as ArchiveImport, 'photos')

  it('that a worker has stored before it died counts as imported, and is deleted by a cancellation', async () => {
    const { id, uid, name } = await beginWithPhoto()
    await pod.pictures.write(name, Buffer.from('half a picture'))
    await run(id, { stopAt: 'photos' })
    expect(await photosOf(id)).toEqual({ imported: 1, skipped: 0 })
    expect((await pod.pictures.read(name))?.toString()).not.toBe('half a picture')
    await cancelImport(pod, user(al), uid)
    expect(await pod.pictures.find(name)).toBeUndefined()
  })

  it('that another import has stored was there before, and stays after a cancellation', async () => {
    const first = await beginWithPhoto()
    await run(first.id)
    const { archive, photos } = first
    const { id, uid } = await begin(archive, { photos, move: false })
    await run(id, { stopAt: 'photos' })
    expect(await photosOf(id)).toEqual({ imported: 0, skipped: 1 })
    await cancelImport(pod, user(al), uid)
    expect(await pod.pictures.find(first.name)).toBeDefined()
  })

  it('is left to the worker that has claimed the import meanwhile, and the cursor too', async () => {
    const { id, name } = await beginWithPhoto()
    const makePicture: typeof makeImportedPicture = async (bytes) => {
      await pod.db('imports').update({ aliveAt: new Date(Date.now() - 3_600_000) })
      await run(id, { stopAt: 'posts' })
      return makeImportedPicture(bytes)
    }
    const late = runImport(pod, id, { signal: forever, makePicture })
    await expect(late).rejects.toMatchObject({ name: 'ImportStopped' })
    expect(await pod.db('imports').where({ id }).first()).toMatchObject({ state: 'running', phase: 'posts', lines: 1 })
    expect(await photosOf(id)).toEqual({ imported: 1, skipped: 0 })
    expect(await pod.pictures.find(name)).toBeDefined()
  })

  it('stays if the connection is lost while its outcome is committed', async () => {
    const { id, name } = await beginWithPhoto()
    let isLost = false
    async function transaction(work: (transaction: Knex.Transaction) => Promise<unknown>) {
      const result = await pod.db.transaction(work)
      const isPhoto = !isLost && (await pod.db('importItems').where({ importId: id, section: 'photos' })).length > 0
      if (!isPhoto) return result
      isLost = true
      throw new Error('The connection is lost.')
    }
    const db = new Proxy(pod.db, {
      get: (target, key, receiver) => (key === 'transaction' ? transaction : Reflect.get(target, key, receiver)),
    })
    await run(id, { db })
    expect(isLost).toBe(true)
    await run(id)
    expect(await photosOf(id)).toEqual({ imported: 1, skipped: 0 })
    expect(await pod.db('photos').select('name', 'remotePath')).toEqual([{ name, remotePath: null }])
    expect(await pod.pictures.find(name)).toBeDefined()
  })

  it('is no orphan in an unfinished import; without it, the photo stays on the old pod', async () => {
    const { id, name } = await beginWithPhoto()
    await run(id, { stopAt: 'photos' })
    const now = new Date(Date.now() + 8 * 86_400_000)
    const removeOrphans = () => removeOrphanedFiles(pod.db, pod.pictures, { now, dryRun: false, signal: forever })
    await removeOrphans()
    expect(await pod.pictures.find(name)).toBeDefined()
    await pod.pictures.delete(listPhotoFiles(name))
    await run(id)
    expect(await pod.db('photos').select('name', 'remotePath')).toEqual([
      { name: 'own.png', remotePath: 'https://gone.example/' },
    ])
    await pod.pictures.write(name, Buffer.from('x'))
    await removeOrphans()
    expect(await pod.pictures.find(name)).toBeUndefined()
  })
})

describe('an entry of a zip', () => {
  it('is refused if it is longer than its stated size', async () => {
    const entry = (bytes: number) => ({ bytes, open: async () => Readable.from([Buffer.from('ab'), Buffer.from('c')]) })
    expect(await readPhotoOfZip(entry(3))).toEqual(Buffer.from('abc'))
    await expect(readPhotoOfZip(entry(2))).rejects.toMatchObject({ reason: 'image_invalid' })
  })
})

describe('an item is refused', () => {
  it('if the person or their pod is blocked here', async () => {
    const ned = await pod.addRemotePerson('ned@shut.example')
    const zoe = await pod.addRemotePerson('zoe@z.example')
    await blockPod('shut.example')
    await pod.db('people').where({ id: zoe.id }).update({ restriction: 'block' })
    const post = postBy(old)
    const archive = archiveOf(old, {
      user: {
        posts: [archivedPost(post)],
        contacts: [ned.address, zoe.address, 'new@shut.example'].map((address) => archivedContact(address)),
      },
      others: [ned, zoe].map((author) => entityToJson(commentBy(author, post))),
    })
    expect((await check(archive)).contacts).toMatchObject({ reachable: 0, onBlockedPods: 3 })
    const done = await importAll(archive)

    expect(counts(done, 'contacts')).toEqual({ imported: 0, skipped: 0, pod_blocked: 3 })
    expect(counts(done, 'others_relayables')).toEqual({ imported: 0, skipped: 0, pod_blocked: 2 })
    expect(await pod.rows('contacts', 'claimed_followers', 'comments')).toEqual([0, 0, 0])
  })

  it('if its address is that of a private network, to which nothing is sent', async () => {
    const strict = { ...pod, remotePods: pod.fakePods.remotePods({ allowPrivate: 'none' }) }
    const addresses = ['a@127.0.0.1', 'a@10.1.2.3', 'a@[::1]']
    const { id } = await begin(
      archiveOf(old, { user: { contacts: addresses.map((address) => archivedContact(address)) } }),
    )
    const before = pod.fakePods.requests.length
    await runImport(strict, id, { signal: forever, makePicture: makeImportedPicture })

    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'contacts')).toEqual({ imported: 0, skipped: 0, not_found: 3 })
    expect(pod.fakePods.requests.slice(before)).toEqual([])
  })

  it('skips content of another person, with a known guid, or deleted', async () => {
    const bobs = await addPost(pod, bob)
    const deleted = postBy(old)
    await Tombstone.insertMany(pod.db as never, [{ type: 'Post', guid: deleted.guid, by: al.address }])
    const posts = [postBy(carl), postBy(old, { guid: bobs.guid }), deleted, postBy(old, { text: ' ' }), reshareBy(old)]
    const done = await importAll(archiveOf(old, { user: { posts: posts.map((post) => archivedPost(post)) } }))

    expect(counts(done, 'posts')).toMatchObject({
      imported: 0,
      foreign_author: 1,
      guid_taken: 1,
      deleted_before: 1,
      empty: 1,
      root_missing: 1,
    })
    expect(await pod.db('posts').where({ guid: bobs.guid }).first()).toMatchObject({ authorId: bob.id })
  })

  it('if the signature of its author is wrong, missing or cannot be verified', async () => {
    const post = postBy(old)
    const eve = { ...pod.fakePods.person('eve@e.example'), address: 'nobody@nowhere.example' }
    const changed = { ...commentBy(carl, post), text: 'changed' }
    const entities = [
      {
        ...entityToJson(commentBy(carl, post)),
        entity_data: { ...entityToJson(commentBy(carl, post)).entity_data, text: changed.text },
      },
      entityToJson({ ...commentBy(carl, post), author_signature: undefined }),
      entityToJson(commentBy(eve, post)),
      entityToJson(commentBy({ ...carl, address: bob.address }, post)),
      entityToJson(commentBy(carl, postBy(old))),
    ]
    const contacts = [archivedContact(eve.address, { public_key: eve.publicKey })]
    const done = await importAll(archiveOf(old, { user: { posts: [archivedPost(post)], contacts }, others: entities }))

    expect(counts(done, 'others_relayables')).toEqual({
      imported: 0,
      skipped: 0,
      signature_wrong: 1,
      signature_missing: 1,
      author_unknown: 1,
      local_author: 1,
      parent_missing: 1,
    })
  })

  it('never for characters that PostgreSQL or XML cannot have: they are replaced', async () => {
    const bad = 'a\u0000b\u0001c'
    const post = postBy(old, { text: bad })
    const archive = archiveOf(old, {
      user: {
        posts: [archivedPost(post)],
        relayables: [archivedRelayable(commentBy(old, post, { text: bad }))],
        contact_groups: [{ name: 'New ones' }, { name: 'x\u0000y' }],
        followed_tags: ['soup', 'sou\u0000p'],
        blocks: ['e\u0000@e.example'],
        profile: { entity_type: 'profile', entity_data: { author: old.address, first_name: 'Al\u0000', bio: bad } },
      },
    })
    const done = await importAll(archive)

    expect([done.state, counts(done, 'posts')]).toEqual(['done', { imported: 1, skipped: 0 }])
    expect(await pod.db('posts').pluck('text')).toEqual(['a\ufffdb\ufffdc'])
    expect(await pod.db('comments').pluck('text')).toEqual(['a\ufffdb\ufffdc'])
    expect(await pod.db('profiles').where({ personId: al.id }).first()).toMatchObject({ bio: 'a\ufffdb\ufffdc' })
    await pod.db('aspects').where('name', 'like', 'x%').delete()
  })

  it('alone, if it is malformed; the others are imported', async () => {
    const post = postBy(old)
    const { photos: _, ...data } = entityToJson(post).entity_data
    const reshare = archivedPost(reshareBy(old, { ...postBy(carl), author: carl.address }))
    const archive = archiveOf(old, {
      user: {
        auto_follow_back: true,
        auto_follow_back_aspect: { id: 1, name: 'Family' },
        posts: [
          { entity_type: 'status_message', entity_data: { ...data, photos: null } },
          { ...reshare, entity_data: { ...Object(reshare['entity_data']), public: true } },
          true,
          null,
        ],
        contacts: [{ account_id: carl.address, contact_groups_membership: 'x' }, 7],
        relayables: [true],
        __proto__x: 1,
      },
    })
    const done = await importAll(archive)
    expect(done.state).toBe('done')
    expect(counts(done, 'posts')).toEqual({ imported: 1, skipped: 0, schema: 2, root_missing: 1 })
    expect(counts(done, 'relayables')).toMatchObject({ schema: 1 })
    expect(counts(done, 'contacts')).toMatchObject({ schema: 1 })
  })
})

describe('the row of an import', () => {
  it('keeps only valid members of the profile and the settings, and lists of imports leave them out', async () => {
    const long = 'x'.repeat(1_000_000)
    const profile = archiveOf(old).user['profile'] as { readonly entity_data: object }
    const entity_data = {
      ...profile.entity_data,
      bio: null,
      image_url: `https://old.example/${long}`,
      more: long,
    }
    const members = {
      language: long,
      disable_mail: long,
      auto_follow_back: [long],
      auto_follow_back_aspect: { name: long, more: long },
      settings: { time_zone: long },
    }
    const archive = archiveOf(old, { user: { ...members, profile: { entity_type: 'profile', entity_data } } })
    const done = await importAll(archive)
    expect(done).toMatchObject({ state: 'done', header: { profile: { first_name: 'Old' } } })
    expect(JSON.stringify(done.header).length).toBeLessThan(2_000)
    expect(await pod.db('profiles').where({ personId: al.id }).first()).toMatchObject({ firstName: 'Old', bio: '' })
    const { imports } = await listImports(pod, { userId: al.userId } as never)
    expect(imports).toEqual([expect.not.objectContaining({ header: expect.anything() })])
  })

  it('counts all refused items, and lists the first of each reason', async () => {
    const unreadable = Array.from({ length: IMPORT_LIMITS.listedRefusals + 600 }, () => 1)
    const comment = commentBy(old, postBy(carl), { text: 'Later' })
    const archive = archiveOf(old, { user: { relayables: [archivedRelayable(comment), ...unreadable] } })
    const done = await importAll(archive)
    const refused = { parent_missing: 1, schema: unreadable.length }
    expect(counts(done, 'relayables')).toEqual({ imported: 0, skipped: 0, ...refused })
    expect(await pod.rows('import_items')).toEqual([IMPORT_LIMITS.listedRefusals + 1 + 2])

    await pod.db('imports').update({ retryAt: new Date(Date.now() - 1_000) })
    await retryItems(pod, forever)
    expect(counts((await findArchiveImport(pod.db, { id: done.id })) ?? done, 'relayables')).toEqual({
      imported: 0,
      skipped: 0,
      ...refused,
    })
  })

  it('has no profile that is not valid, which is refused alone', async () => {
    const entity_data = {
      author: old.address,
      first_name: 'Old',
      bio: 'x'.repeat(65_536),
      image_url: 'https://old.example/a.png',
    }
    const archive = archiveOf(old, { user: { profile: { entity_type: 'profile', entity_data } } })
    expect((await check(archive)).sections.profile).toMatchObject({ imported: 0, by_reason: { schema: 1 } })
    const done = await importAll(archive)
    expect(counts(done, 'profile')).toEqual({ imported: 0, skipped: 0, schema: 1 })
    expect(done.header).not.toHaveProperty('profile')
  })
})

describe('an archive is refused', () => {
  const encryptedPem = (key: KeyObject) =>
    key.export({ type: 'pkcs1', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' })

  it.each([
    ['key_mismatch', () => archiveOf({ ...old, privateKey: carl.privateKey })],
    ['key_unusable', () => archiveOf(old, { user: { private_key: '' } })],
    [
      'key_unusable',
      () => archiveOf({ ...old, privateKey: generateKeyPairSync('rsa', { modulusLength: 512 }).privateKey }),
    ],
    ['key_unusable', () => archiveOf(old, { user: { private_key: encryptedPem(old.privateKey) } })],
    ['unknown_version', () => ({ ...archiveOf(old), version: '3.0' })],
    ['schema', () => archiveOf(old, { user: { profile: null } })],
    ['broken_json', () => '{"user": {'],
    ['broken_json', () => `{"user":${'['.repeat(100_000)}`],
    ['too_large', () => JSON.stringify(archiveOf(old, { user: { posts: ['x'.repeat(2 ** 21)] } }))],
  ])('with %s, and nothing is created', async (fault, archive) => {
    await expect(begin(archive(), { move: true })).rejects.toMatchObject({ fault })
    expect(await pod.rows('imports', 'account_migrations')).toEqual([0, 0])
  })

  it('if the stored key of its account cannot be read, as after a take-over', async () => {
    const { id } = await pod.addRemotePerson(old.address)
    await pod.db('people').where({ id }).update({ publicKey: 'no key' })
    await expect(begin(archiveOf(old))).rejects.toMatchObject({ fault: 'key_mismatch' })
    const pem = old.publicKey.toString()
    await pod
      .db('people')
      .where({ id })
      .update({ publicKey: createPublicKey(pem).export({ type: 'pkcs1', format: 'pem' }) })
    await expect(begin(archiveOf(old))).resolves.toMatchObject({ identity: 'proven' })
  })

  it('if it is not UTF-8, expands beyond measure, or is incomplete', async () => {
    const spool = async (bytes: Buffer) => {
      const file = join(folder, newGuid())
      await writeFile(file, bytes)
      return spoolArchive(await openPlainFile(file), { folder: join(folder, newGuid()), maxBytes: 2 ** 30 })
    }
    const latin = Buffer.from([0x7b, 0x22, 0xe9, 0x22, 0x3a, 0x31, 0x7d])
    await expect(spool(latin)).rejects.toMatchObject({ fault: 'not_utf8' })
    const bomb = gzipSync(Buffer.alloc(64 * 2 ** 20, ' '))
    await expect(spool(bomb)).rejects.toMatchObject({ fault: 'too_large' })
    const cut = gzipSync(`{"user":{"x":"${randomBytes(100_000).toString('base64')}"}}`)
    for (const length of [5, 12, 60_000]) {
      await expect(spool(cut.subarray(0, length))).rejects.toMatchObject({ fault: 'broken_json' })
    }
    const zip = new yazl.ZipFile()
    zip.addBuffer(Buffer.from(JSON.stringify(archiveOf(old))), 'a.json')
    zip.end()
    const chunks: Buffer[] = []
    for await (const chunk of zip.outputStream) chunks.push(chunk as Buffer)
    for (const start of [8, 40]) {
      const damaged = Buffer.concat(chunks).fill(0xff, start, start + 20)
      await expect(spool(damaged)).rejects.toMatchObject({ fault: 'broken_json' })
    }
  })

  it('if it has more contacts than are read, and nothing is created', async () => {
    const contacts = Array.from({ length: 20_001 }, (_, index) => archivedContact(`c${index}@many.example`))
    await expect(begin(archiveOf(old, { user: { contacts } }))).rejects.toMatchObject({ fault: 'too_many' })
    expect(await pod.rows('imports', 'account_migrations', 'contacts')).toEqual([0, 0, 0])
    expect(pod.fakePods.requests.filter((request) => request.startsWith('many.example'))).toEqual([])
  })

  it('if it has more aspects than an account may have; contacts name at most so many', async () => {
    const names = Array.from({ length: IMPORT_LIMITS.aspects + 1 }, (_, index) => `Garden ${index}`)
    const groups = names.map((name) => ({ name }))
    await expect(begin(archiveOf(old, { user: { contact_groups: groups } }))).rejects.toMatchObject({
      fault: 'too_many',
    })
    const contacts = [archivedContact(carl.address, { contact_groups_membership: names })]
    await importAll(archiveOf(old, { user: { contacts } }))
    const aspects = await pod.db('aspects').where({ userId: al.userId }).pluck('name')
    expect(aspects).toHaveLength(IMPORT_LIMITS.aspects)
    await pod.db('aspects').whereIn('name', names).delete()
  })

  it('if it follows more tags than are read; tags beyond those of an account are refused alone', async () => {
    const tags = (count: number) => Array.from({ length: count }, (_, index) => `tag${index}`)
    const archive = (count: number) => archiveOf(old, { user: { followed_tags: tags(count) } })
    await expect(begin(archive(IMPORT_LIMITS.marks + 1))).rejects.toMatchObject({ fault: 'too_many' })
    const done = await importAll(archive(LIST_LIMITS.followedTags + 1))
    expect(counts(done, 'tags')).toEqual({ imported: LIST_LIMITS.followedTags, skipped: 0, over_limit: 1 })
    expect(await pod.rows('tag_followings')).toEqual([LIST_LIMITS.followedTags])
  })

  it('if a list occurs three times, which would begin the counts anew', async () => {
    const twice = JSON.stringify(archiveOf(old)).replace(
      '"followed_tags":[]',
      '"followed_tags":["a"],"followed_tags":["b"]',
    )
    expect(counts(await importAll(twice), 'tags')).toEqual({ imported: 1, skipped: 0 })
    expect(await pod.db('tags').join('tag_followings', 'tagId', 'tags.id').pluck('name')).toEqual(['b'])
    const often = twice.replace('"followed_tags"', '"followed_tags":[],"followed_tags"')
    await expect(begin(often)).rejects.toMatchObject({ fault: 'schema' })
  })

  it('if its posts name more photos than a zip may have, also in one post', async () => {
    const photos = Array.from({ length: IMPORT_LIMITS.photoEntries + 1 }, (_, index) => ({
      entity_data: { remote_photo_name: `${index}.png` },
    }))
    const posts = (some: readonly unknown[]) => archiveOf(old, { user: { posts: [{ entity_data: { photos: some } }] } })
    await expect(begin(posts(photos))).rejects.toMatchObject({ fault: 'too_many' })
    expect(await pod.rows('imports')).toEqual([0])
    expect((await begin(posts(photos.slice(1)))).counts.photos).toMatchObject({ found: IMPORT_LIMITS.photoEntries })
  })

  it('if the zip of photos is damaged', async () => {
    const photos = join(folder, newGuid())
    await writeFile(photos, 'PK')
    await expect(begin(archiveOf(old), { photos })).rejects.toMatchObject({ fault: 'broken_json' })
    expect(await pod.rows('imports')).toEqual([0])
  })

  it('if the account has moved to another one', async () => {
    await importAll(archiveOf(old))
    await expect(begin(archiveOf(old), { as: bob })).rejects.toMatchObject({ fault: 'moved_elsewhere' })
  })
})

describe('a move from an account that this pod did not know', () => {
  /** The account of the tests, on a pod that does not answer yet. */
  let home: FakePerson
  beforeEach(() => {
    home = { ...old, address: `ghost-${newGuid().slice(0, 8)}@gone.example` }
    old = { ...home, privateKey: carl.privateKey, publicKey: carl.publicKey } // an invented archive
  })

  async function becomeKnown() {
    const { address, publicKey, privateKey } = home
    pod.fakePods.person(address, { publicKey, privateKey })
    return discoverPerson(pod, address, { ignoresRecentFailures: true })
  }

  const moves = () => pod.db('accountMigrations').orderBy('id').select('oldPersonId', 'newPersonId')

  it('yields to the import of its owner into another account', async () => {
    expect(await importAll(archiveOf(old), { as: bob })).toMatchObject({ state: 'done', identity: 'unproven' })
    const { id } = await becomeKnown()
    expect(await pod.rows('outbox')).toEqual([0])
    await expect(begin(archiveOf(old), { as: bob })).rejects.toMatchObject({ fault: 'key_mismatch' })
    const { guid } = await addPost(pod, { id })

    expect(await importAll(archiveOf(home))).toMatchObject({ state: 'done', identity: 'proven' })
    expect(await moves()).toEqual([
      { oldPersonId: null, newPersonId: bob.id },
      { oldPersonId: id, newPersonId: al.id },
    ])
    expect(await pod.db('posts').where({ guid }).first('authorId')).toEqual({ authorId: al.id })
    const announced = await pod.db('migration_announcements').distinct('migrationId')
    expect(announced).toHaveLength(2)
    await expect(begin(archiveOf(home), { as: bob })).rejects.toMatchObject({ fault: 'moved_elsewhere' })
  })

  it('counts once the account is known and its key has signed the move', async () => {
    old = home
    expect(await importAll(archiveOf(home), { as: bob })).toMatchObject({ identity: 'unproven' })
    const { id } = await becomeKnown()
    const { guid } = await addPost(pod, { id })
    await expect(begin(archiveOf(home))).rejects.toMatchObject({ fault: 'moved_elsewhere' })

    const envelopes: readonly string[] = await pod.db('outbox').pluck('payload')
    const [envelope = ''] = envelopes
    expect(await receive(pod, { envelope, acceptedAt: new Date() })).toEqual(allStored)
    expect(await moves()).toEqual([{ oldPersonId: id, newPersonId: bob.id }])
    expect(await pod.db('posts').where({ guid }).first('authorId')).toEqual({ authorId: bob.id })
    expect(await Person.byAddress(pod.db, home.address)).toMatchObject({ closedAt: expect.any(Date) })
    expect(await importAll(archiveOf(home), { as: bob })).toMatchObject({ state: 'done', identity: 'moved_here' })
  })

  it.each(['after the import has begun', 'by the earlier moves of the archive'])(
    'fails if the account becomes known with another key %s',
    async (when) => {
      await pod.db('profiles').where({ personId: al.id }).update({ firstName: 'Al' })
      const contacts = [archivedContact(carl.address, { contact_groups_membership: ['New ones'] })]
      const migrations = [{ old_address: 'before@gone.example', envelope: 'x' }]
      const { id: importId } = await begin(archiveOf(old, { user: { contacts, migrations } }))
      pod.fakePods.person(home.address, home)
      if (when === 'after the import has begun') await becomeKnown()
      const later = { ...pod, now: () => new Date(Date.now() + 2 * 60_000) } // failed lookups are remembered for a minute
      const run = runImport(later, importId, { signal: forever, makePicture: makeImportedPicture })
      await expect(run).rejects.toMatchObject({ fault: 'key_mismatch' })
      expect(await findArchiveImport(pod.db, { id: importId })).toMatchObject({
        state: 'failed',
        error: 'key_mismatch',
      })
      expect(await pod.rows('account_migrations', 'contacts', 'claimed_followers')).toEqual([0, 0, 0])
      expect(await pod.db('aspects').where({ name: 'New ones' })).toEqual([])
      expect(await pod.db('profiles').where({ personId: al.id }).first('firstName')).toEqual({ firstName: 'Al' })
      expect(await Person.byAddress(pod.db, home.address)).toMatchObject({ closedAt: null })
    },
  )

  it('no longer holds the old address when the new account is closed', async () => {
    const gil = await addLocalUser(pod, `gil${newGuid().slice(0, 8)}`)
    await importAll(archiveOf(old), { as: gil })
    await expect(begin(archiveOf(home), { as: bob })).rejects.toMatchObject({ fault: 'moved_elsewhere' })
    await pod.db('people').where({ id: gil.id }).update({ closedAt: new Date() })

    expect(await importAll(archiveOf(home), { as: bob })).toMatchObject({ state: 'done', identity: 'unproven' })
    expect(await moves()).toEqual([{ oldPersonId: null, newPersonId: bob.id }])
  })
})

describe('an archive is read', () => {
  it('from gzip of several members, zip and JSON with a byte order mark, in any order of members', async () => {
    const post = archivedPost(postBy(old, { text: 'a"b\\c\u0000é' }))
    const { version, user: members, others_data } = archiveOf(old, { user: { posts: [post] } })
    const text = JSON.stringify({
      others_data,
      version: '1',
      user: members,
      version2: {},
      x: [{}, [1.5e3, '"', null]],
    }).replace('"version":"1"', `"version":"${version}"`)
    const half = Math.floor(text.length / 2)
    const zip = new yazl.ZipFile()
    zip.addBuffer(Buffer.from('{}'), '__MACOSX/x.json')
    zip.addBuffer(Buffer.from(text), 'archive.json')
    zip.end()
    const zipped: Buffer[] = []
    for await (const chunk of zip.outputStream) zipped.push(chunk as Buffer)
    const files = [
      Buffer.concat([gzipSync(text.slice(0, half)), gzipSync(text.slice(half))]),
      Buffer.concat(zipped),
      Buffer.from(`\ufeff${text}`),
    ]
    for (const bytes of files) {
      const file = join(folder, newGuid())
      await writeFile(file, bytes)
      const spooled = await spoolArchive(await openPlainFile(file), {
        folder: join(folder, newGuid()),
        maxBytes: 2 ** 30,
      })
      expect(spooled.counts.posts).toBe(1)
      expect(spooled.values.get('user.private_key')).toBe(privateKeyPem(old.privateKey))
    }
  })

  it('an archive of version 1.0 finds posts without guid again', async () => {
    const archive = {
      version: '1.0',
      user: {
        name: 'alice',
        serialized_private_key: privateKeyPem(old.privateKey),
        profile: { diaspora_handle: old.address, first_name: 'Al' },
        aspects: [{ name: 'Old friends', contacts_visible: true }],
        contacts: [
          { sharing: false, receiving: true, person_diaspora_handle: carl.address, aspects: [{ name: 'Old friends' }] },
        ],
        posts: [
          {
            text: 'first',
            public: true,
            diaspora_handle: old.address,
            type: 'StatusMessage',
            created_at: '2012-03-04 05:06:07 UTC',
          },
          {
            text: '',
            public: true,
            diaspora_handle: old.address,
            type: 'Reshare',
            created_at: '2012-03-04 05:06:07 UTC',
          },
        ],
        comments: [{ text: 'x', created_at: '2012-03-04 05:06:07 UTC' }],
      },
    }
    expect(counts(await importAll(archive), 'posts')).toEqual({ imported: 1, skipped: 0, root_missing: 1 })
    expect(counts(await importAll(archive), 'posts')).toEqual({ imported: 0, skipped: 1, root_missing: 1 })
    expect(await pod.db('posts').select('createdAt', 'text')).toEqual([
      { createdAt: new Date('2012-03-04T05:06:07Z'), text: 'first' },
    ])
  })

  it('an archive of version 1.0 with guids, as of 0.6, keeps them, and its comments find their posts', async () => {
    const [post, comment] = [newGuid(), newGuid()]
    const time = { created_at: '2016-03-04T05:06:07Z' }
    const archive = {
      version: '1.0',
      user: {
        name: 'alice',
        serialized_private_key: privateKeyPem(old.privateKey),
        profile: { diaspora_handle: old.address, first_name: 'Al' },
        posts: [
          { guid: post, text: 'a post', public: true, diaspora_handle: old.address, type: 'StatusMessage', ...time },
        ],
        comments: [{ guid: comment, text: 'a comment', post_guid: post, ...time }],
      },
    }
    const first = await importAll(archive)
    expect([counts(first, 'posts'), counts(first, 'relayables')]).toEqual([
      { imported: 1, skipped: 0 },
      { imported: 1, skipped: 0 },
    ])
    expect(await pod.db('posts').pluck('guid')).toEqual([post])
    expect(await pod.db('comments').select('guid', 'text', 'authorId')).toEqual([
      { guid: comment, text: 'a comment', authorId: al.id },
    ])
    const again = await importAll(archive)
    expect([counts(again, 'posts'), counts(again, 'relayables')]).toEqual([
      { imported: 0, skipped: 1 },
      { imported: 0, skipped: 1 },
    ])
  })
})

describe('a check', () => {
  it('counts the outcomes of an import, and changes nothing', async () => {
    const tables = ['posts', 'contacts', 'aspects', 'imports', 'account_migrations', 'outbox', 'tags']
    const before = await pod.rows(...tables)
    const foldersOf = () => readdir(join(pod.config.uploadsDir, 'imports')).catch(() => [])
    const folders = await foldersOf() // of imports whose items are tried again
    const report = await check(fullArchive().archive)

    expect(report).toMatchObject({
      identity: 'proven',
      oldAddress: old.address,
      posts: { public: 2, private: 1 },
      photos: { named: 1, found: 0, missing: 1 },
      contacts: { reachable: 2, unreachable: 0 },
      warnings: ['no_photos_given'],
    })
    expect(counts({ counts: report.sections }, 'posts')).toEqual({ imported: 3, skipped: 0 })
    expect(counts({ counts: report.sections }, 'others_relayables')).toEqual({ imported: 3, skipped: 0 })
    expect(await pod.rows(...tables)).toEqual(before)
    expect(await foldersOf()).toEqual(folders)
  })

  it('warns if the account has contacts already, whose aspects other pods would lose', async () => {
    expect((await check(archiveOf(old))).warnings).toEqual([])
    await pod.db('contacts').insert({ userId: al.userId, personId: carl.id, receiving: true })
    expect((await check(archiveOf(old))).warnings).toEqual(['new_account_has_contacts'])
  })

  it('warns of contacts on Friendica', async () => {
    const friend = await pod.addRemotePerson('fred@friendica.example')
    await pod.db('pods').where({ host: 'friendica.example' }).update({ software: 'friendica' })
    const archive = archiveOf(old, { user: { contacts: [archivedContact(friend.address)] } })
    expect((await check(archive)).warnings).toEqual(['friendica_contacts'])
  })

  it('warns if the pod of the old account is blocked', async () => {
    const known = await pod.addRemotePerson(`kim-${newGuid().slice(0, 6)}@shut.example`)
    await blockPod('shut.example')
    expect(await check(archiveOf(known))).toMatchObject({ identity: 'proven', warnings: ['old_pod_blocked'] })
  })

  it('proves a known account on an unreachable pod by its stored key', async () => {
    const known = await pod.addRemotePerson(`kim-${newGuid().slice(0, 6)}@down.example`)
    await pod.db('people').where({ id: known.id }).update({ refreshedAt: null })
    let requests = 0
    pod.fakePods.script('down.example/.well-known/webfinger', (_request, response) => {
      requests += 1
      response.writeHead(503).end()
    })
    expect(await check(archiveOf(known))).toMatchObject({ identity: 'proven' })
    expect(requests).toBeGreaterThan(0)
    await expect(check(archiveOf({ ...known, privateKey: carl.privateKey }))).rejects.toMatchObject({
      fault: 'key_mismatch',
    })
  })

  it('reports an unproven identity for an unknown account on an unreachable pod', async () => {
    const ghost = { ...old, address: `ghost-${newGuid().slice(0, 6)}@gone.example` }
    expect(await check(archiveOf(ghost))).toMatchObject({ identity: 'unproven', warnings: ['identity_unproven'] })
  })
})

/** A folder with an archive that a real diaspora* has written, for those who have one. */
const fixtures = process.env['DIASPORA_FIXTURES']

describe.runIf(fixtures !== undefined)('the archive of a real diaspora*', () => {
  it('is imported with everything that this pod can verify', async () => {
    const file = join(fixtures ?? '', 'dora-archive.json.gz')
    const spooled = await spoolArchive(await openPlainFile(file), {
      folder: join(folder, newGuid()),
      maxBytes: 2 ** 30,
    })
    await rm(spooled.folder, { recursive: true })
    expect(spooled.counts).toMatchObject({
      contact_groups: 5,
      contacts: 2,
      posts: 15,
      own_comments: 8,
      own_reactions: 6,
      others_comments: 8,
      others_reactions: 7,
      followed_tags: 2,
      post_subscriptions: 11,
      blocks: 0,
    })
    const { id } = await beginImport(pod, COMMAND_ACTOR, {
      file,
      photosFile: join(fixtures ?? '', 'dora-photos.zip'),
      user: user(bob),
      options: { contacts: true, content: true, settings: true, profile: true },
      moveFrom: 'dora@localhost:4500',
    })
    await runImport(pod, id, { signal: forever, makePicture: makeImportedPicture })
    const done = await findArchiveImport(pod.db, { id })
    expect(counts(done ?? { counts: {} }, 'posts')).toEqual({ imported: 13, skipped: 0, root_missing: 2 })
    // Only what stands below the own posts has a parent here; no pod has emil's key.
    expect(counts(done ?? { counts: {} }, 'photos')).toEqual({ imported: 5, skipped: 0 })
    expect(counts(done ?? { counts: {} }, 'relayables')).toEqual({ imported: 1, skipped: 0, parent_missing: 13 })
    expect(counts(done ?? { counts: {} }, 'others_relayables')).toEqual({ imported: 0, skipped: 0, author_unknown: 15 })
  })
})
