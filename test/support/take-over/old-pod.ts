import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { hash } from '@node-rs/bcrypt'
import type { Knex } from 'knex'
import { DIASPORA_PEPPER } from '../../../src/domain/accounts/passwords/bcrypt-password.js'
import { type OpenDatabase, openEmptyDatabase } from '../databases/test-database.js'
import { makeOldTables } from './old-tables.js'

export const OLD_HOST = 'old.example'
export const OLD_PASSWORD = 'correct horse battery'

/** A database of diaspora* with people, content, and every kind of invalid row that the take-over skips. */
export interface OldPod extends OpenDatabase {
  /** Secrets by name, which must not appear outside of this database. */
  readonly secrets: Readonly<Record<string, string>>
  readonly publicKeys: Readonly<Record<string, string>>
  readonly privateKeys: ReadonlyMap<string, KeyObject>
  insert(table: string, ...rows: readonly Record<string, unknown>[]): Promise<void>
}

export const guidOf = (name: string) => `${name.replaceAll(/[^a-z0-9]/gi, '-')}-guid-0123456789`

export async function bcryptOf(password: string, pepper = DIASPORA_PEPPER): Promise<string> {
  const text = Buffer.from(`${password}${pepper}`).subarray(0, 72)
  return (await hash(text, 4)).replace(/^\$2[by]\$/, '$2a$')
}

/** `options` are those of `create database`. */
export async function createOldPod(options = ''): Promise<OldPod> {
  const database = await openEmptyDatabase(options)
  const { db } = database
  await makeOldTables(db)
  const insert = async (table: string, ...rows: readonly Record<string, unknown>[]) => {
    if (rows.length > 0) await db(table).insert(rows)
  }
  const keys = makeKeys(['alice', 'bob', 'carol', 'dave', 'erin', 'rita', 'sven', 'tina', 'mia', 'moved'])
  const context = { insert, keys }
  const secrets = await addAccounts(db, context)
  await addPeople(context)
  await addContacts(context)
  await addPosts(context)
  await addInteractions(context)
  await addConversations(context)
  await addClients(context)
  await db.raw(`select setval('posts_id_seq', 900)`)
  const publicKeys = Object.fromEntries([...keys].map(([name, { publicText }]) => [name, publicText]))
  const privateKeys = new Map([...keys].map(([name, { privateKey }]) => [name, privateKey]))
  return { ...database, secrets, publicKeys, privateKeys, insert }
}

interface Key {
  readonly privateKey: KeyObject
  readonly privateText: string
  readonly publicText: string
}

interface OldPodContext {
  readonly insert: OldPod['insert']
  readonly keys: ReadonlyMap<string, Key>
}

function makeKeys(names: readonly string[]): ReadonlyMap<string, Key> {
  return new Map(
    names.map((name, index) => {
      const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
      // Public keys have both formats in old databases.
      const publicText = publicKey.export({ type: index % 2 === 0 ? 'spki' : 'pkcs1', format: 'pem' }).toString()
      return [
        name,
        { privateKey, privateText: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(), publicText },
      ]
    }),
  )
}

/** Languages of diaspora*, which are not all language tags. */
const LANGUAGES: Readonly<Record<string, string>> = { alice: 'de_formal', bob: 'art-nvi', carol: 'hy', dave: 'zh-CN' }

const LOCAL = { alice: 1, bob: 2, carol: 3, dave: 4, erin: 5 } as const
const personId = (name: string) => (LOCAL[name as keyof typeof LOCAL] ?? 0) + 10

async function addAccounts(db: Knex, { insert, keys }: OldPodContext): Promise<Readonly<Record<string, string>>> {
  const password = await bcryptOf(OLD_PASSWORD)
  const backupCode = 'f00dfeedcafe0123'
  const backupHash = await bcryptOf(backupCode)
  for (const [name, id] of Object.entries(LOCAL)) {
    const key = keys.get(name)
    await insert('users', {
      id,
      username: name,
      serialized_private_key: key?.privateText,
      email: name === 'carol' ? 'deletedaccount_3@example.org' : `${name}@mail.example`,
      encrypted_password: password,
      language: LANGUAGES[name],
      ...(name === 'alice' && {
        hidden_shareables: "---\nPost:\n- '112'\n- 112\n",
        auto_follow_back: true,
        auto_follow_back_aspect_id: 1,
      }),
      ...(name === 'bob' && {
        otp_required_for_login: true,
        plain_otp_secret: 'JBSWY3DPEHPK3PXP',
        otp_backup_codes: `---\n- "${backupHash}"\n`,
      }),
      ...(name !== 'alice' && name !== 'bob' && { locked_at: '2021-02-03 04:05:06.789999' }),
      last_seen: '2021-01-01 00:00:00',
    })
    await insert('people', {
      id: personId(name),
      guid: guidOf(name),
      diaspora_handle: `${name}@${OLD_HOST}`,
      serialized_public_key: key?.publicText,
      owner_id: id,
      closed_account: name === 'carol' || name === 'erin',
    })
    await insert('profiles', {
      person_id: personId(name),
      first_name: name === 'alice' ? 'Alice' : null,
      birthday: name === 'alice' ? '1004-02-29' : null,
      image_url: name === 'alice' ? '/uploads/images/thumb_large_x.jpg' : '/images/user/default.png',
      bio: name === 'alice' ? ' a bio with\r\nlines ' : null,
    })
  }
  await insert(
    'roles',
    { person_id: 11, name: 'admin' },
    { person_id: 11, name: 'spotlight' },
    { person_id: 12, name: 'moderator' },
  )
  await insert('account_deletions', { person_id: 13, completed_at: '2021-03-03 03:03:03' }, { person_id: 15 })
  await insert('user_preferences', { user_id: 1, email_type: 'liked' }, { user_id: 1, email_type: 'private_message' })
  await db.raw(`select setval('users_id_seq', 5)`)
  return {
    password,
    backupHash,
    totp: 'JBSWY3DPEHPK3PXP',
    key: (keys.get('alice')?.privateText ?? '').split('\n')[3] ?? '',
    clientSecret: `${'c'.repeat(63)}d`,
    refreshToken: `${'e'.repeat(63)}f`,
    accessToken: `${'a'.repeat(63)}b`,
    privateText: 'a private text that only its readers know',
  }
}

async function addPeople({ insert, keys }: OldPodContext): Promise<void> {
  await insert(
    'pods',
    { id: 1, host: 'one.example', port: -1, ssl: true, status: 1, software: 'diaspora 0.7.18.2' },
    { id: 2, host: 'two.example', port: -1, ssl: true, status: 3, blocked: true },
    { id: 3, host: 'three.example', port: 3000, ssl: false, status: 0 },
    { id: 4, host: 'One.example', port: 443, ssl: true },
    { id: 5, host: OLD_HOST, port: -1, ssl: true },
  )
  const remote = (id: number, name: string, handle: string, more: Record<string, unknown>) => ({
    id,
    guid: guidOf(handle),
    diaspora_handle: handle,
    serialized_public_key: keys.get(name)?.publicText,
    owner_id: null,
    ...more,
  })
  await insert(
    'people',
    remote(21, 'rita', 'rita@one.example', { pod_id: 1, fetch_status: 4 }),
    remote(22, 'sven', 'sven@two.example', { pod_id: 2 }),
    remote(23, 'tina', 'tina@three.example:3000', { pod_id: 3 }),
    remote(24, 'rita', 'Rita@one.example', { pod_id: 4 }),
    remote(25, 'sven', 'no address@x/y', { pod_id: 2 }),
    remote(26, 'tina', 'ulla@four.example', { pod_id: null }),
    remote(27, 'mia', 'Mia@three.example:3000', { pod_id: 3, closed_account: true }),
    remote(28, 'moved', 'mia@one.example', { pod_id: 1 }),
  )
  await insert(
    'profiles',
    { person_id: 21, first_name: 'Rita' },
    { person_id: 21, first_name: 'Second' },
    { person_id: 22 },
    { person_id: 23 },
    { person_id: 27 },
    { person_id: 28 },
  )
  await insert('account_migrations', { old_person_id: 27, new_person_id: 28, completed_at: '2021-01-01 00:00:00' })
}

async function addContacts({ insert }: OldPodContext): Promise<void> {
  await insert(
    'aspects',
    { id: 1, name: 'Work', user_id: 1, order_id: null },
    { id: 2, name: 'work', user_id: 1, order_id: 1 },
    { id: 3, name: 'Friends', user_id: 2, order_id: null },
  )
  await insert(
    'contacts',
    { id: 1, user_id: 1, person_id: 12, sharing: true, receiving: true },
    { id: 2, user_id: 1, person_id: 21, sharing: true, receiving: true },
    { id: 3, user_id: 1, person_id: 24, sharing: true, receiving: false },
    { id: 4, user_id: 1, person_id: 22, sharing: false, receiving: false },
    { id: 5, user_id: 1, person_id: 11, sharing: true, receiving: true },
    { id: 6, user_id: 2, person_id: 11, sharing: true, receiving: true },
    { id: 7, user_id: 5, person_id: 21, sharing: true, receiving: true },
    { id: 8, user_id: 2, person_id: 999, sharing: true, receiving: true },
  )
  await insert(
    'aspect_memberships',
    { aspect_id: 1, contact_id: 1 },
    { aspect_id: 2, contact_id: 2 },
    { aspect_id: 2, contact_id: 3 },
  )
  await insert('blocks', { user_id: 1, person_id: 22 }, { user_id: 1, person_id: 11 })
}

async function addPosts({ insert }: OldPodContext): Promise<void> {
  const post = (id: number, author: number, more: Record<string, unknown> = {}) => ({
    id,
    guid: guidOf(`post-${id}`),
    author_id: author,
    public: true,
    type: 'StatusMessage',
    text: `Post ${id} #Tag`,
    ...more,
  })
  await insert(
    'posts',
    post(101, 11, { created_at: '2020-01-02 03:04:05.999600', comments_count: 7, likes_count: 2 }),
    post(102, 11, { public: false, text: 'a private text that only its readers know' }),
    post(103, 11, { public: false, text: 'only for me' }),
    post(104, 12, { guid: 'short' }),
    post(105, 12, { type: 'Reshare', text: null, root_guid: guidOf('post-101') }),
    post(106, 21),
    post(107, 24, { type: 'Reshare', text: null, root_guid: guidOf('post-101') }),
    post(108, 21, { type: 'Reshare', text: null, root_guid: guidOf('post-101') }),
    post(109, 999),
    post(110, 12, { type: 'ActivityStreams::Photo', text: '' }),
    post(111, 22, { created_at: '2099-01-01 00:00:00' }),
    post(112, 12, { comments_count: 1, likes_count: 1 }),
    ...Array.from({ length: 40 }, (_, index) => post(200 + index, 12, { text: ` 🌻 line\r\nof post ${index} ` })),
  )
  await insert(
    'aspect_visibilities',
    { shareable_id: 102, shareable_type: 'Post', aspect_id: 1 },
    { shareable_id: 101, shareable_type: 'Post', aspect_id: 1 },
  )
  await insert(
    'share_visibilities',
    { shareable_id: 102, shareable_type: 'Post', user_id: 1 },
    { shareable_id: 102, shareable_type: 'Post', user_id: 2, hidden: true },
    { shareable_id: 101, shareable_type: 'Post', user_id: 2 },
  )
  const path = `https://${OLD_HOST}/uploads/images/`
  await insert(
    'photos',
    {
      id: 1,
      author_id: 11,
      public: true,
      guid: guidOf('photo-1'),
      remote_photo_path: path,
      remote_photo_name: 'x.JPG',
      status_message_guid: guidOf('post-101'),
    },
    {
      id: 2,
      author_id: 11,
      public: true,
      guid: guidOf('photo-2'),
      remote_photo_path: `http://www.${OLD_HOST}/uploads/images/`,
      remote_photo_name: 'y.jpg',
    },
    {
      id: 3,
      author_id: 21,
      public: true,
      guid: guidOf('photo-3'),
      remote_photo_path: 'https://one.example/uploads/images/',
      remote_photo_name: 'z.jpg',
    },
    {
      id: 4,
      author_id: 11,
      public: false,
      guid: guidOf('photo-4'),
      remote_photo_path: null,
      remote_photo_name: null,
      processed_image: 'old.png',
    },
  )
  await insert(
    'locations',
    { status_message_id: 101, address: 'here', lat: '1.5', lng: '2.5' },
    { status_message_id: 101, lat: '1', lng: '2' },
    { status_message_id: 112, lat: '1' },
  )
  await insert('polls', { id: 1, question: 'Soup?', status_message_id: 101, guid: guidOf('poll-1') })
  await insert(
    'poll_answers',
    { id: 1, answer: 'yes', poll_id: 1, guid: guidOf('answer-1'), vote_count: 9 },
    { id: 2, answer: 'no', poll_id: 1, guid: null },
  )
  await insert(
    'poll_participations',
    { id: 1, poll_answer_id: 1, author_id: 12, poll_id: 1, guid: guidOf('vote-1') },
    { id: 2, poll_answer_id: 2, author_id: 12, poll_id: 1, guid: null },
  )
}

const ORDER = ['author', 'guid', 'parent_guid', 'text', 'mood', 'created_at'] as const

async function addInteractions({ insert, keys }: OldPodContext): Promise<void> {
  await insert(
    'comments',
    { id: 1, text: 'a local comment', commentable_id: 101, author_id: 12, guid: guidOf('comment-1') },
    {
      id: 2,
      text: 'signed by Rita',
      commentable_id: 101,
      author_id: 21,
      guid: guidOf('comment-2'),
      created_at: '2020-02-02 02:02:02.5',
    },
    { id: 3, text: 'by Carol', commentable_id: 101, author_id: 13, guid: guidOf('comment-3') },
    { id: 4, text: 'without a post', commentable_id: 998, author_id: 12, guid: guidOf('comment-4') },
    { id: 5, text: 'unsigned', commentable_id: 101, author_id: 23, guid: guidOf('comment-5') },
    {
      id: 6,
      text: 'of a photo',
      commentable_id: 1,
      commentable_type: 'Photo',
      author_id: 12,
      guid: guidOf('comment-6'),
    },
  )
  const values: Readonly<Record<string, string>> = {
    author: 'rita@one.example',
    guid: guidOf('comment-2'),
    parent_guid: guidOf('post-101'),
    text: 'signed by Rita',
    mood: 'good',
    created_at: '2020-02-02T02:02:02Z',
  }
  const key = keys.get('rita')?.privateKey
  if (key === undefined) throw new Error('Rita has no key.')
  const signature = sign('sha256', Buffer.from(ORDER.map((name) => values[name]).join(';')), key).toString('base64')
  await insert('signature_orders', { id: 1, order: ORDER.join(' ') })
  await insert('comment_signatures', {
    comment_id: 2,
    author_signature: `${signature.slice(0, 60)}\n${signature.slice(60)}\n`,
    signature_order_id: 1,
    additional_data: '--- !ruby/hash:ActiveSupport::HashWithIndifferentAccess\nmood: good\n',
  })
  await addMovedComment({ insert, keys })
  await addOtherSignatures({ insert, keys })
  const like = (id: number, author: number, more: Record<string, unknown> = {}) => ({
    id,
    target_id: 101,
    target_type: 'Post',
    author_id: author,
    guid: guidOf(`like-${id}`),
    ...more,
  })
  await insert(
    'likes',
    like(1, 12),
    like(2, 21),
    like(3, 24),
    like(4, 12, { target_type: 'Comment', target_id: 2 }),
    like(5, 22, { positive: false }),
    like(6, 12, { target_id: 997 }),
  )
  await insert(
    'participations',
    { target_id: 101, target_type: 'Post', author_id: 12, guid: guidOf('part-1'), count: 2 },
    { target_id: 101, target_type: 'Post', author_id: 11, guid: guidOf('part-2') },
    { target_id: 112, target_type: 'Post', author_id: 21, guid: guidOf('part-1') },
  )
  await insert('tags', { id: 1, name: 'Foo' }, { id: 2, name: 'foo' }, { id: 3, name: 'tag' })
  const tagging = (tag: number, taggable: number, type: string) => ({
    tag_id: tag,
    taggable_id: taggable,
    taggable_type: type,
    context: 'tags',
  })
  await insert(
    'taggings',
    tagging(1, 101, 'Post'),
    tagging(2, 101, 'Post'),
    tagging(3, 101, 'Post'),
    tagging(3, 1, 'Profile'),
  )
  await insert('tag_followings', { tag_id: 1, user_id: 1 }, { tag_id: 2, user_id: 1 })
  await insert(
    'mentions',
    { id: 1, mentions_container_id: 112, mentions_container_type: 'Post', person_id: 11 },
    { id: 2, mentions_container_id: 1, mentions_container_type: 'Comment', person_id: 11 },
  )
  const notification = (
    id: number,
    type: string,
    target: readonly [string, number],
    more: Record<string, unknown> = {},
  ) => ({
    id,
    type: `Notifications::${type}`,
    target_type: target[0],
    target_id: target[1],
    recipient_id: 1,
    unread: true,
    guid: guidOf(`notification-${id}`),
    ...more,
  })
  await insert(
    'notifications',
    notification(1, 'Liked', ['Post', 101]),
    notification(2, 'Liked', ['Post', 101]),
    notification(3, 'Liked', ['Post', 101]),
    notification(4, 'MentionedInPost', ['Mention', 1], { unread: false }),
    notification(5, 'MentionedInComment', ['Mention', 2]),
    notification(6, 'StartedSharing', ['Person', 21]),
    notification(7, 'Liked', ['Post', 996]),
    notification(8, 'Unheard', ['Post', 101]),
    notification(9, 'ContactsBirthday', ['Person', 21]),
    notification(10, 'CommentOnPost', ['Post', 101], { guid: null }),
  )
  await insert(
    'notification_actors',
    ...Array.from({ length: 10 }, (_, index) => ({ notification_id: index + 1, person_id: 12 })),
  )
  await insert(
    'reports',
    { item_id: 101, item_type: 'Post', text: 'spam', reviewed: false, user_id: 2 },
    { item_id: 995, item_type: 'Post', user_id: 2 },
  )
}

/** Adds a comment of a person who has moved: its author is the new row, its signature contains the old address. */
async function addMovedComment({ insert, keys }: OldPodContext): Promise<void> {
  await insert('comments', { id: 7, text: 'by Mia', commentable_id: 101, author_id: 28, guid: guidOf('comment-7') })
  const text = `Mia@three.example:3000;${guidOf('comment-7')};${guidOf('post-101')};by Mia`
  const key = keys.get('mia')?.privateKey
  if (key === undefined) throw new Error('Mia has no key.')
  await insert('signature_orders', { id: 2, order: 'author guid parent_guid text' })
  await insert('comment_signatures', {
    comment_id: 7,
    author_signature: sign('sha256', Buffer.from(text), key).toString('base64'),
    signature_order_id: 2,
  })
}

/** Adds a like with the signature order of releases before 0.6, and a comment with a time in YAML. */
async function addOtherSignatures({ insert, keys }: OldPodContext): Promise<void> {
  const signature = (name: string, text: string) => {
    const key = keys.get(name)?.privateKey
    if (key === undefined) throw new Error(`${name} has no key.`)
    return sign('sha256', Buffer.from(text), key).toString('base64')
  }
  await insert(
    'signature_orders',
    { id: 3, order: 'positive guid parent_type parent_guid author' },
    { id: 4, order: 'author guid parent_guid text edited_at' },
  )
  await insert('likes', {
    id: 8,
    target_id: 112,
    target_type: 'Post',
    author_id: 22,
    guid: guidOf('like-8'),
    positive: true,
  })
  await insert('like_signatures', {
    like_id: 8,
    author_signature: signature('sven', `true;${guidOf('like-8')};Post;${guidOf('post-112')};sven@two.example`),
    signature_order_id: 3,
  })
  await insert('comments', { id: 8, text: 'edited', commentable_id: 112, author_id: 21, guid: guidOf('comment-8') })
  const edited = `rita@one.example;${guidOf('comment-8')};${guidOf('post-112')};edited;2020-03-04T05:06:07Z`
  await insert('comment_signatures', {
    comment_id: 8,
    author_signature: signature('rita', edited),
    signature_order_id: 4,
    additional_data: '---\nedited_at: 2020-03-04 05:06:07.000000000 Z\n',
  })
}

async function addConversations({ insert }: OldPodContext): Promise<void> {
  await insert(
    'conversations',
    { id: 1, subject: ' ', guid: guidOf('conversation-1'), author_id: 11 },
    { id: 2, subject: 'nobody sees it', guid: guidOf('conversation-2'), author_id: 11 },
  )
  await insert(
    'conversation_visibilities',
    { conversation_id: 1, person_id: 11, unread: 0 },
    { conversation_id: 1, person_id: 12, unread: 2 },
  )
  await insert(
    'messages',
    ...[1, 2, 3].map((id) => ({
      id,
      conversation_id: 1,
      author_id: 11,
      guid: guidOf(`message-${id}`),
      text: `private message ${id}`,
    })),
  )
}

async function addClients({ insert }: OldPodContext): Promise<void> {
  const client = (id: number, more: Record<string, unknown>) => ({
    id,
    client_id: String(id).repeat(32),
    client_secret: `${'c'.repeat(63)}d`,
    client_name: `App ${id}`,
    redirect_uris: JSON.stringify([`app${id}.id://callback`]),
    ...more,
  })
  await insert(
    'o_auth_applications',
    client(1, {}),
    client(2, { ppid: true }),
    client(3, { ppid: true }),
    client(4, { redirect_uris: null }),
  )
  const scopes = JSON.stringify(['openid', 'public:read', 'unheard:of'])
  await insert(
    'authorizations',
    {
      id: 1,
      user_id: 1,
      o_auth_application_id: 1,
      scopes,
      refresh_token: `${'e'.repeat(63)}f`,
      updated_at: '2020-06-01',
    },
    {
      id: 2,
      user_id: 1,
      o_auth_application_id: 1,
      scopes: JSON.stringify(['private:read']),
      refresh_token: '0'.repeat(64),
      updated_at: '2019-06-01',
    },
    { id: 3, user_id: 1, o_auth_application_id: 2, scopes },
    { id: 4, user_id: 1, o_auth_application_id: 3, scopes },
  )
  await insert(
    'o_auth_access_tokens',
    { authorization_id: 1, token: `${'a'.repeat(63)}b`, expires_at: '2199-01-01' },
    { authorization_id: 1, token: 'a'.repeat(64), expires_at: '2020-01-01' },
    { authorization_id: 2, token: '1'.repeat(64), expires_at: '2199-01-01' },
  )
  await insert('ppid', { user_id: 1, guid: '0123456789abcdef0123456789abcdef', identifier: 'callback' })
}
