import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeSettings } from '../../../src/domain/accounts/settings.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { beginImport } from '../../../src/federation/archives/imports/begin-import.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import { writeArchive } from '../../../src/federation/archives/write-archive.js'
import { openFolderPictures } from '../../../src/persistence/photos/folder-pictures.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { archivedContact, archivedPost, archiveOf } from '../../support/federation/archives.js'
import { photoBy, postBy } from '../../support/federation/entities.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let folder: string
let pod: FederationPod
let al: LocalUser
let bob: LocalUser
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-round-trip-'))
  const opened = await openFederationPod()
  pod = { ...opened, config: { ...opened.config, uploadsDir: folder }, pictures: openFolderPictures(folder) }
  await pod.pictures.check()
  ;({ al, bob } = await pod.localUsers('al', 'bob'))
})
afterAll(async () => {
  await pod.close()
  await rm(folder, { recursive: true })
})

async function exportArchive(username: string) {
  let text = ''
  for await (const piece of writeArchive(pod, { username, shouldIncludeKey: true, upTo: pod.now() })) text += piece
  return JSON.parse(text)
}

async function importInto({ userId, id: personId, address }: LocalUser, archive: unknown, moveFrom: string) {
  const file = join(folder, newGuid())
  await writeFile(file, gzipSync(JSON.stringify(archive)))
  const [username = ''] = address.split('@')
  const { id } = await beginImport(pod, COMMAND_ACTOR, {
    file,
    photosFile: undefined,
    user: { userId, personId, address, username },
    moveFrom,
    options: { contacts: true, content: true, settings: true, profile: true },
  })
  return runImport(pod, id, { signal: new AbortController().signal, makePicture: makeImportedPicture })
}

/** Without what belongs to the account itself: names, keys, addresses of pictures, times of the profile, lists of recipients. */
function comparable(archive: Awaited<ReturnType<typeof exportArchive>>, address: string) {
  const {
    username: _,
    email: __,
    private_key: ___,
    guid: ____,
    created_at: _____,
    profile,
    posts,
    migrations: ______,
    settings: { follow_back_aspect_id: _________, default_post_aspect_ids: __________, ...settings },
    ...user
  } = archive.user
  const { edited_at: _______, author: ________, ...about } = profile.entity_data
  const withoutRecipients = posts.map(
    ({ subscribed_pods_uris: _, subscribed_users_ids: __, ...post }: Record<string, unknown>) => post,
  )
  const text = JSON.stringify({ ...user, settings, about, posts: withoutRecipients, others: archive.others_data })
  return JSON.parse(text.replaceAll(address, 'me'))
}

it('an archive that is exported, imported and exported again is the same', async () => {
  const old = pod.fakePods.person('alice@old.example')
  const { carl } = await pod.remotePeople('carl')
  const posts = [
    postBy(old, { text: 'Public #garden', photos: [photoBy(old)] }),
    postBy(old, { text: 'For friends', public: false }),
  ] as const
  await importInto(
    al,
    archiveOf(old, {
      user: {
        contact_groups: [{ name: 'Garden people' }],
        contacts: [archivedContact(carl.address, { sharing: false, contact_groups_membership: ['Garden people'] })],
        posts: [archivedPost(posts[0]), archivedPost(posts[1], { aspects: ['Garden people'] })],
        followed_tags: ['soup'],
        disable_mail: true,
      },
    }),
    old.address,
  )
  const aspects = await pod.db('aspects').where({ userId: al.userId, name: 'Garden people' })
  await pod.db.transaction((transaction) =>
    writeSettings({ db: transaction, locales: pod.locales }, al.userId, {
      language: 'fr',
      timeZone: 'Europe/Paris',
      followBackAspectId: aspects[0].id,
      defaultPostAspectIds: [aspects[0].id],
      mail: { digestHour: 7, kinds: { mentioned: 'daily' } },
    }),
  )
  await pod
    .db('hidden_posts')
    .insert({ userId: al.userId, postId: pod.db('posts').where({ guid: posts[0]?.guid }).select('id') })
  const [conversation] = await pod
    .db('conversations')
    .insert({
      guid: newGuid(),
      authorId: carl.id,
      subject: 'Soup',
      createdAt: new Date('2020-01-01'),
      updatedAt: new Date('2020-01-02'),
    })
    .returning(['id', 'guid'])
  for (const [personId, unread] of [
    [al.id, 1],
    [carl.id, 0],
  ]) {
    await pod.db('conversation_visibilities').insert({
      conversationId: conversation.id,
      personId,
      unread,
      createdAt: new Date('2020-01-01'),
      updatedAt: new Date('2020-01-02'),
    })
  }
  await pod.db('messages').insert([
    {
      guid: newGuid(),
      conversationId: conversation.id,
      authorId: carl.id,
      text: 'Hello',
      createdAt: new Date('2020-01-01'),
      arrivedAt: new Date('2020-01-01'),
    },
    {
      guid: newGuid(),
      conversationId: conversation.id,
      authorId: al.id,
      text: 'Hi',
      createdAt: new Date('2020-01-02'),
      arrivedAt: new Date('2020-01-02'),
    },
  ])
  const first = await exportArchive('al')
  expect(first.user.migrations).toMatchObject([{ old_address: 'alice@old.example' }])
  // The schema of diaspora* wants numbers, also where the size is unknown.
  expect(first.user.posts.flatMap((post: typeof first) => post.entity_data.photos)).toMatchObject([
    { entity_data: { width: 0, height: 0 } },
  ])
  expect(first.user.disable_mail).toBe(true)
  expect(first.user.settings).toMatchObject({
    mail_enabled: false,
    time_zone: 'Europe/Paris',
    follow_back_aspect: 'Garden people',
    follow_back_aspect_id: Number(aspects[0].id),
    default_post_aspect_ids: [Number(aspects[0].id)],
    digest_hour: 7,
  })
  expect(first.user.conversations).toMatchObject([
    {
      read: false,
      entity_data: { subject: 'Soup', messages: [{ entity_data: { text: 'Hello' } }, { entity_data: { text: 'Hi' } }] },
    },
  ])

  // As on a new pod: everything of the account is gone here but its key.
  await pod.empty('posts, contacts, tag_followings, conversations, hidden_posts, account_migrations')
  await pod.db('aspects').where({ userId: bob.userId }).delete()
  const done = await importInto(bob, first, al.address)
  expect(done?.counts.conversations).toMatchObject({ found: 1, imported: 1, refused: 0 })
  const second = await exportArchive('bob')
  expect(comparable(second, bob.address)).toEqual(comparable(first, al.address))
  expect(second.user.migrations).toMatchObject([{ old_address: 'alice@old.example' }, { old_address: al.address }])
  expect((await pod.db('conversation_visibilities').select('personId')).map(({ personId }) => personId)).toEqual([
    bob.id,
  ])
})
