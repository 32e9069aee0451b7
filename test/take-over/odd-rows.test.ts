import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkCode } from '../../src/domain/accounts/factors/second-factor.js'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { openServices } from '../../src/services/open-services.js'
import { closeUnfinishedAccounts } from '../../src/take-over/close-unfinished-accounts.js'
import { readStatus } from '../../src/take-over/status.js'
import {
  abortTakeOver,
  copyOldPod,
  examineOldPod,
  rehearse,
  switchOver,
  verifyBuilt,
} from '../../src/take-over/take-over.js'
import { testLog } from '../support/assertions/test-log.js'
import { buildPod } from '../support/pods/build-pod.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { createOldPod, guidOf, OLD_HOST, OLD_PASSWORD, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

let old: OldPod
let taken: TestTarget

/** Rows that real databases have, each of which a build could stumble over. */
async function addOddRows({ db, insert }: OldPod): Promise<void> {
  await db.raw(`
    insert into photos (id, author_id, public, guid, remote_photo_path, remote_photo_name)
    select id, 21, true, 'a-photo-with-id-' || id, 'https://one.example/uploads/images/', id || '.jpg'
    from generate_series(1001, 34000) as id`)
  await insert('photos', {
    id: 5,
    author_id: 11,
    public: true,
    guid: guidOf('photo-5'),
    remote_photo_name: 'w.jpg',
    remote_photo_path: `http://${OLD_HOST}:8080/uploads/images/`,
    created_at: null,
    updated_at: null,
    status_message_guid: guidOf('post-101'),
  })
  await insert(
    'pods',
    { id: 7, host: null, port: -1, ssl: true },
    { id: 8, host: 'THREE.example', port: 3000, blocked: true },
  )
  await insert('people', {
    id: 30,
    guid: guidOf('of no pod'),
    diaspora_handle: 'otto@five.example',
    pod_id: 7,
    serialized_public_key: old.publicKeys['sven'],
  })
  await insert('posts', {
    id: 300,
    guid: guidOf('post-300'),
    author_id: 30,
    public: true,
    type: 'StatusMessage',
    text: 'of no pod',
    created_at: '2020-03-03 03:03:03.333',
  })
  // Of a person without pod, whose time must be compared as that of other remote people.
  await insert('posts', {
    id: 301,
    guid: guidOf('post-301'),
    author_id: 26,
    public: true,
    type: 'StatusMessage',
    text: 'by Ulla',
  })
  await insert('comments', {
    id: 20,
    text: 'without a time',
    commentable_id: 300,
    author_id: 12,
    guid: guidOf('comment-20'),
    created_at: null,
    updated_at: null,
  })
  const notification = { recipient_id: 1, unread: true }
  await insert(
    'notifications',
    { id: 20, type: 'Notifications::AlsoCommented', target_type: 'Photo', target_id: 101, ...notification },
    {
      id: 21,
      type: 'Notifications::ContactsBirthday',
      target_type: 'Person',
      target_id: 12,
      ...notification,
      created_at: null,
      updated_at: null,
    },
  )
  await insert('notification_actors', { notification_id: 20, person_id: 12 }, { notification_id: 21, person_id: 12 })
  await insert('conversations', { id: 3, subject: '\t\n', guid: guidOf('conversation-3'), author_id: 11 })
  await insert('conversation_visibilities', { conversation_id: 3, person_id: 11, unread: 0 })
  await insert('o_embed_caches', {
    id: 1,
    url: 'https://video.example',
    data: `---\ntitle: 'a \\u0000 and "\\ud800"'\n`,
  })
  await db('posts').where({ id: 112 }).update({ o_embed_cache_id: 1 })
  // A second factor whose secret is lost.
  await db('users').where({ id: 2 }).update({ plain_otp_secret: null })
  await insert('account_deletions', { person_id: 22 })
  await insert('posts', {
    id: 302,
    guid: guidOf('post-302'),
    author_id: 22,
    public: true,
    type: 'StatusMessage',
    text: 'of Sven',
  })
  const signed = { author_signature: 'AAAA', signature_order_id: 2 }
  await insert(
    'comments',
    ...[21, 22, 23].map((id) => ({ id, text: 'x', commentable_id: 101, author_id: 21, guid: guidOf(`comment-${id}`) })),
  )
  await insert(
    'comment_signatures',
    { comment_id: 21, ...signed },
    { comment_id: 22, ...signed, author_signature: '' },
    { comment_id: 23, ...signed, additional_data: '--- [' },
  )
  await insert('o_auth_applications', {
    id: 9,
    client_id: '9'.repeat(32),
    client_name: 'App 9',
    logo_uri: '',
    sector_identifier_uri: '',
    ppid: true,
    redirect_uris: JSON.stringify(['https://app.example/callback']),
    token_endpoint_auth_method: 'private_key_jwt',
    response_types: JSON.stringify(['id_token token']),
  })
}

beforeAll(async () => {
  old = await createOldPod()
  taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
  await addOddRows(old)
}, 180_000)

afterAll(async () => {
  await taken?.close()
  await old?.close()
})

it('lists invalid signatures and applications that will not work as before, and expects a time', async () => {
  const { clients, findings, seconds, blocks } = await examineOldPod(taken.target, taken.options)
  expect(blocks).toEqual([])
  expect(findings.filter(({ code }) => code === 'D16')).toEqual([
    { code: 'D16', table: 'comment_signatures', count: 3, examples: ['22', '21', '23'] },
  ])
  expect(findings.find(({ code }) => code === 'D14')?.examples).toContain('20')
  expect(clients).toEqual([
    { reason: 'redirect URI', count: 1, examples: ['4'] },
    { reason: 'private_key_jwt', count: 1, examples: ['9'] },
    { reason: 'implicit flow', count: 1, examples: ['9'] },
  ])
  expect(seconds?.copy).toBeGreaterThan(0)
  const slow = await examineOldPod(taken.target, { ...taken.options, rate: 100 })
  expect(slow.seconds?.copy).toBeGreaterThan(300)
})

it('builds them all, without a difference', async () => {
  const { verification, warnings, repaired } = await rehearse(taken.target, {
    ...taken.options,
    mayLoseJobs: false,
  })
  expect(verification.differences).toEqual([])
  expect(warnings).toEqual([
    expect.stringContaining('Without --oidc-key'),
    expect.stringContaining('Without --sidekiq'),
  ])
  expect(repaired).toBe(0)
  expect(await taken.rowsOf('select max(position) as last from photos where post_id is null')).toEqual([{ last: 0 }])
  expect(await taken.rowsOf('select remote_path, created_at from photos where id = 5')).toEqual([
    { remote_path: null, created_at: new Date('2020-01-02T03:04:05.999Z') },
  ])
  expect(
    await taken.rowsOf(
      `select people.address, pods.host, closed_at is null as open from people join pods on pods.id = pod_id where people.id = 30`,
    ),
  ).toEqual([{ address: 'otto@five.example', host: 'five.example', open: true }])
  expect(await taken.rowsOf(`select blocked_at is not null as blocked from pods where host = 'three.example'`)).toEqual(
    [{ blocked: true }],
  )
  expect(await taken.rowsOf('select created_at from comments where id = 20')).toEqual([
    { created_at: new Date('2020-03-03T03:03:03.333Z') },
  ])
  expect(await taken.rowsOf('select id::int, day::text from notifications where id in (20, 21)')).toEqual([
    { id: 21, day: '2010-01-01' },
  ])
  expect(await taken.rowsOf('select subject from conversations where id = 3')).toEqual([{ subject: 'No subject' }])
  expect(await taken.rowsOf(`select embed ->> 'title' as title from posts where id = 112`)).toEqual([
    { title: 'a \\u0000 and "\\ud800"' },
  ])
  expect(await taken.rowsOf('select metadata from clients where id = 9')).toEqual([
    {
      metadata: {
        application_type: 'web',
        token_endpoint_auth_method: 'client_secret_post',
        subject_type: 'pairwise',
      },
    },
  ])
}, 180_000)

it.each([
  [
    'pods',
    `update pods set host = 'changed.example' where id = 2`,
    `update pods set host = 'two.example' where id = 2`,
  ],
  [
    'polls',
    `update polls set question = question || 'x' where id = 1`,
    `update polls set question = left(question, -1) where id = 1`,
  ],
  [
    'conversations',
    `update conversations set subject = 'x' where id = 1`,
    `update conversations set subject = 'No subject' where id = 1`,
  ],
  [
    'e-mail addresses',
    `update users set email = 'x@mail.example' where id = 1`,
    `update users set email = 'alice@mail.example' where id = 1`,
  ],
  [
    'likes',
    `update likes set created_at = created_at + interval '1 second' where id = 2`,
    `update likes set created_at = created_at - interval '1 second' where id = 2`,
  ],
  ['photos', `update photos set name = 'x.png' where id = 4`, `update photos set name = 'old.png' where id = 4`],
  [
    'blocks',
    `update blocks set person_id = 23 where user_id = 1`,
    `update blocks set person_id = 22 where user_id = 1`,
  ],
])(
  'finds a changed row of %s',
  async (check, change, undo) => {
    await taken.target.db.raw(change)
    const { differences } = await verifyBuilt(taken.target, taken.options)
    await taken.target.db.raw(undo)
    expect(differences.map((difference) => difference.check)).toContain(check)
  },
  60_000,
)

it.each(['link', 'copy'] as const)(
  'leaves all files of the old pod when it is given up, with --uploads-mode %s',
  async (uploadsMode) => {
    const uploads = join(taken.folder, `old-${uploadsMode}`)
    await mkdir(join(uploads, 'images'), { recursive: true })
    for (const name of ['w.jpg', 'x.JPG']) await writeFile(join(uploads, 'images', name), name)
    await rehearse(taken.target, { ...taken.options, uploads, uploadsMode })
    await abortTakeOver(taken.target)
    expect((await readdir(join(uploads, 'images'))).sort()).toEqual(['w.jpg', 'x.JPG'])
    expect((await readdir(join(taken.folder, 'uploads', 'images'))).sort()).toEqual(['w.jpg', 'x.JPG'])
  },
  180_000,
)

it('never opens an account with a second factor by its password alone, and empties people who have left', async () => {
  await copyOldPod(taken.target, taken.options)
  const written = new Date()
  await old.insert('posts', {
    id: 902,
    guid: guidOf('post-902'),
    author_id: 21,
    public: true,
    type: 'StatusMessage',
    text: 'after the copy',
    created_at: written.toISOString().replace('Z', ''),
  })
  await switchOver(taken.target, taken.options, async () => {
    const services = await openServices(taken.target.config, 'command', { crypto: fixedKeyCrypto(), log: testLog() })
    return { closed: await closeUnfinishedAccounts(services).finally(() => services.close()) }
  })
  expect(await taken.rowsOf('select created_at from posts where id = 902')).toEqual([{ created_at: written }])
  expect(await taken.rowsOf('select id from posts where id = 302')).toEqual([])
  expect((await readStatus(taken.target.db)).added).toEqual({
    users: 0,
    contacts: 0,
    posts: 0,
    photos: 0,
    comments: 0,
    likes: 0,
    messages: 0,
  })
  await expect(switchOver(taken.target, taken.options, async () => ({}))).rejects.toThrow('This pod is open')
  const pod = await buildPod({ environment: taken.environment })
  try {
    expect((await signIn(pod.pod, 'bob', OLD_PASSWORD))?.needsFactor).toBe(true)
    expect(await checkCode(pod.pod, 2, 'f00dfeedcafe0123')).toBe('right')
  } finally {
    await pod.close()
  }
  await taken.target.db('comments').insert({ guid: guidOf('a new comment'), postId: 101, authorId: 11, text: 'new' })
  expect((await readStatus(taken.target.db)).added).toMatchObject({ comments: 1 })
}, 180_000)
