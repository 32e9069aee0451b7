import { createHash, createPrivateKey, createPublicKey } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import yauzl from 'yauzl'
import { newGuid } from '../../../src/domain/new-guid.js'
import { archiveOthersRelayables } from '../../../src/federation/archives/archived-relayables.js'
import { exportToFile } from '../../../src/federation/archives/export-archive.js'
import type { ExportKind } from '../../../src/persistence/archives/exports.js'
import { entityFromJson } from '../../../src/protocol/entities/entity-json.js'
import { isRelayable } from '../../../src/protocol/entities/registry.js'
import { verifyRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import { compileArchiveSchema } from '../../support/federation/archive-schema.js'
import { twoColours } from '../../support/files/pictures.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import type { ApiPerson } from '../../support/pods/api-pod.js'
import { type PhotoPod, startPhotoPod } from '../../support/pods/photo-pod.js'
import { publish } from '../../support/pods/sample-api-pod.js'
import { untilIdle } from '../../support/queues/test-workers.js'

interface Item {
  readonly entity_type: string
  readonly entity_data: Readonly<Record<string, unknown>>
  readonly [name: string]: unknown
}

const fixtures = process.env['DIASPORA_FIXTURES']

describe('an archive of an account', () => {
  let api: PhotoPod
  let folder: string
  let archive: {
    readonly version: string
    readonly user: Record<string, unknown>
    readonly others_data: { readonly relayables: Item[] }
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'pod-archives-'))
    api = await startPhotoPod()
    await fill(api)
    archive = JSON.parse(gunzipSync(await readFile((await write('archive')).file)).toString())
  })
  afterAll(async () => {
    await api.close()
    await rm(folder, { recursive: true })
  })

  async function write(kind: ExportKind, file = join(folder, newGuid())) {
    return exportToFile(api.pod, { username: 'alice', kind, file })
  }
  const items = (name: string) => archive.user[name] as Item[]
  const posts = () => items('posts').map((post) => ({ ...post, text: post.entity_data['text'] }))
  const postWith = (text: string) => posts().find((post) => post.text === text)

  it('has the members of diaspora* in their order, then those of this pod', () => {
    expect(archive.version).toBe('2.0')
    expect(Object.keys(archive.user)).toEqual([
      ...['username', 'email', 'language', 'private_key', 'disable_mail', 'show_community_spotlight_in_stream'],
      ...['auto_follow_back', 'auto_follow_back_aspect', 'blocks', 'profile', 'contact_groups', 'contacts', 'posts'],
      ...['followed_tags', 'post_subscriptions', 'relayables'],
      ...['guid', 'created_at', 'photos', 'conversations', 'hidden_posts', 'muted_posts', 'settings', 'migrations'],
    ])
    expect(archive.user).toMatchObject({
      username: 'alice',
      email: 'alice@pod.example.invalid',
      auto_follow_back: true,
      auto_follow_back_aspect: 'Friends',
      followed_tags: ['garden'],
      blocks: [api.eve.address],
      guid: api.alice.guid,
      contact_groups: [{ name: 'Family' }, { name: 'Friends' }, { name: 'Work' }, { name: 'Acquaintances' }],
    })
  })

  it('has the private key in PKCS#1 form, which belongs to the person', async () => {
    const pem = String(archive.user['private_key'])
    expect(pem).toMatch(/^-----BEGIN RSA PRIVATE KEY-----\n/)

    const { publicKey } = await api.pod.db('people').where({ guid: api.alice.guid }).first()
    const spki = (key: Parameters<typeof createPublicKey>[0]) =>
      createPublicKey(key).export({ type: 'spki', format: 'pem' })
    expect(spki(createPrivateKey(pem))).toBe(spki(publicKey))
  })

  it('has contacts with their aspects and both directions', () => {
    expect(items('contacts')).toEqual(
      expect.arrayContaining([
        expect.objectContaining({
          account_id: api.bob.address,
          sharing: true,
          receiving: true,
          following: true,
          followed: true,
          person_guid: api.bob.guid,
          public_key: expect.stringContaining('BEGIN PUBLIC KEY'),
          contact_groups_membership: ['Friends'],
        }),
        expect.objectContaining({
          account_id: api.carol.address,
          sharing: true,
          receiving: false,
          contact_groups_membership: [],
        }),
      ]),
    )
  })

  it('has every post with photos, poll and place, oldest first, and exactly one list of recipients', () => {
    expect(posts().map(({ text }) => text)).toEqual([
      'Post of Alice',
      'picture',
      'private',
      'poll and place',
      undefined,
    ])
    expect(postWith('picture')).toMatchObject({
      subscribed_pods_uris: ['https://s.example/', 'https://pod.example/'],
      entity_data: { public: true, photos: [{ entity_type: 'photo', entity_data: { author: api.alice.address } }] },
    })
    expect(postWith('poll and place')).toMatchObject({
      entity_data: {
        photos: [],
        poll: { entity_type: 'poll', entity_data: { question: 'Which?', poll_answers: [{}, {}] } },
        location: { entity_type: 'location', entity_data: { address: 'Ulm' } },
      },
    })
    expect(postWith('private')).toMatchObject({ subscribed_users_ids: [api.bob.address], aspects: ['Friends'] })
    const reshare = posts().at(-1)
    expect(reshare?.entity_data).toMatchObject({ root_author: api.bob.address, root_guid: api.bobPost })
    expect(reshare?.entity_data).not.toHaveProperty('public')
    for (const post of items('posts')) {
      expect(['subscribed_pods_uris', 'subscribed_users_ids'].filter((name) => name in post)).toHaveLength(1)
    }
  })

  it('has own comments, likes and votes without signatures, and the posts of others in which the person takes part', () => {
    const kinds = items('relayables').map(({ entity_type, entity_data }) => [entity_type, entity_data['parent_type']])
    expect(kinds).toEqual([
      ['comment', undefined],
      ['comment', undefined],
      ['like', 'Post'],
      ['like', 'Comment'],
      ['poll_participation', undefined],
    ])
    for (const { entity_data } of items('relayables')) expect(entity_data).not.toHaveProperty('author_signature')
    expect(archive.user['post_subscriptions']).toEqual(expect.arrayContaining([api.bobPost, api.bobPoll]))
    expect(archive.user['post_subscriptions']).not.toContain(api.alicePost)
  })

  it('has the comments of others below own posts, with valid signatures, also of local users', async () => {
    const { publicKey } = await api.pod.db('people').where({ guid: api.bob.guid }).first()
    const key = createPublicKey(publicKey)
    const others = archive.others_data.relayables

    expect(others.map(({ entity_type }) => entity_type)).toEqual(['comment', 'like', 'like', 'poll_participation'])
    for (const item of others) {
      const entity = entityFromJson(item, new Date())
      expect(isRelayable(entity) && verifyRelayable(entity, key), item.entity_type).toBe(true)
    }
    const kept = await api.pod.db('comments').whereNotNull('authorSignature').pluck('guid')
    expect(kept).toContain(others[0]?.entity_data['guid'])
  })

  it('reads the comments of others in pages, also where all posts have some', async () => {
    const idOf = async (guid: string) => (await api.pod.db('people').where({ guid }).first('id')).id
    const personId = await idOf(api.alice.guid)
    const postIds: number[] = await api.pod.db('posts').where({ authorId: personId }).orderBy('id').pluck('id')
    const authorId = await idOf(api.bob.guid)
    const guids = postIds.map(() => newGuid())
    const comments = postIds.map((postId, index) => ({ guid: guids[index], postId, authorId, text: 'One of many' }))
    await api.pod.db('comments').insert(comments)
    const pages: (readonly { readonly entity_data: Item['entity_data'] }[])[] = []
    const query = { postIds, personId, limit: 2 }
    for await (const page of archiveOthersRelayables(api.pod, query, () => undefined)) pages.push(page)
    await api.pod.db('comments').whereIn('guid', guids).delete()
    expect(Math.max(...pages.map((page) => page.length))).toBe(2)
    const archived = archive.others_data.relayables.map((item) => item.entity_data['guid'])
    expect(pages.flatMap((page) => page.map((item) => item.entity_data['guid'])).sort()).toEqual(
      [...archived, ...guids].sort(),
    )
  })

  it('can be read by the rules of messages, item by item', () => {
    const all = [...items('posts'), ...items('relayables'), ...archive.others_data.relayables, ...items('photos')]
    expect(all.length).toBeGreaterThan(10)
    for (const item of all) expect(entityFromJson(item, new Date())).toHaveProperty('type', item.entity_type)
    expect(entityFromJson(archive.user['profile'], new Date())).toMatchObject({ type: 'profile', first_name: 'Alice' })
  })

  it('has the form that the importer of diaspora* accepts, also with a deleted root and photos of unknown size', async () => {
    const validate = compileArchiveSchema()
    const faultsOf = (value: unknown) => {
      validate(value)
      return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
    }
    expect(faultsOf(archive)).toEqual([])

    const [lost] = await api.pod.db('posts').where({ type: 'Reshare' }).update({ rootId: null }).returning('guid')
    await api.pod.db('photos').update({ width: null, height: null })
    const second = JSON.parse(gunzipSync(await readFile((await write('archive')).file)).toString())
    expect(second.user.posts).toHaveLength(items('posts').length - 1)
    expect(JSON.stringify(second)).not.toContain(lost.guid)
    expect(faultsOf(second)).toEqual([])

    // What the importer refuses is refused: it stops at a reshare that says `public`, or has no root.
    for (const change of [{ public: true }, { root_guid: undefined }]) {
      const posts = items('posts').map((post) => ({ ...post, entity_data: { ...post.entity_data } }))
      Object.assign(posts.at(-1)?.entity_data ?? {}, change)
      expect(faultsOf({ ...archive, user: { ...archive.user, posts } })).not.toEqual([])
    }
  })

  it.runIf(fixtures !== undefined)('has the form of an archive that diaspora* has made', async () => {
    const file = await readFile(join(fixtures ?? '', 'dora-archive.json.gz'))
    const validate = compileArchiveSchema()
    const real = JSON.parse(gunzipSync(file).toString())

    validate(real)
    expect(validate.errors).toBeNull()
    const missing = [real.user, archive.user].map((user) => Object.keys(user).slice(0, 16))
    expect(missing[1]).toEqual(missing[0])
    for (const list of ['contacts', 'contact_groups']) {
      expect(Object.keys(items(list)[0] ?? {}), list).toEqual(Object.keys(real.user[list][0]))
    }
  })

  it('without the private key is a copy to read', async () => {
    const text = gunzipSync(await readFile((await write('copy')).file)).toString()

    expect(JSON.parse(text).user.private_key).toBe('')
    expect(text).not.toContain('PRIVATE KEY')
  })

  it('is one gzip member in a file that only its owner can read, with the SHA-256 that is reported', async () => {
    const { file, bytes, sha256 } = await write('archive')

    const facts = await stat(file)
    expect([facts.mode & 0o777, facts.size]).toEqual([0o600, bytes])
    const content = await readFile(file)
    expect(createHash('sha256').update(content).digest('hex')).toBe(sha256)
    expect(content.indexOf(Buffer.from([0x1f, 0x8b, 0x08, 0x00]), 1)).toBe(-1)
  })

  it('never overwrites a file, and leaves none when it fails', async () => {
    const taken = join(folder, 'taken')
    await writeFile(taken, 'mine')
    await expect(write('archive', taken)).rejects.toMatchObject({ reason: 'file_exists' })
    expect(await readFile(taken, 'utf8')).toBe('mine')

    const file = join(folder, 'failed')
    const signal = AbortSignal.abort()
    await expect(exportToFile(api.pod, { username: 'alice', kind: 'archive', file, signal })).rejects.toThrow()
    await expect(stat(file)).rejects.toThrow()
  })

  it('has the photos in a zip of their own, under their names, as they are stored', async () => {
    const { file } = await write('photos')

    const entries = await readZip(file)
    const stored = await api.pod.db('photos').where({ pending: false }).pluck('name')
    expect([...entries.keys()].sort()).toEqual([...stored].sort())
    for (const [name, bytes] of entries)
      expect(bytes.equals((await api.pod.pictures.read(name)) ?? Buffer.from(''))).toBe(true)
  })
})

/** Alice has everything that an archive can contain. */
async function fill(api: PhotoPod): Promise<void> {
  const { alice, bob, friendsAspectId } = api
  api.startWorkers()
  const follower = await addRemotePerson(api.pod, 'sam@s.example')
  await api.pod
    .db('contacts')
    .insert({ userId: alice.viewer.userId, personId: follower.id, sharing: true, receiving: false })
  await api.pod.db('users').where({ id: alice.viewer.userId }).update({ followBackAspectId: friendsAspectId })
  await alice.patch('/user', { name: 'Alice' })
  await alice.post('/tag_followings', { name: 'garden' })
  await alice.post(`/users/${api.eve.guid}/block`)

  const png = await twoColours().png().toBuffer()
  const uploads = [
    await api.upload(alice, png, '?pending=true'),
    await api.upload(alice, png, '?set_profile_photo=true'),
  ]
  await untilIdle(api.pod, 15_000, ['photos'])
  await publish(api, alice, { text: 'picture', public: true, photoGuids: [uploads[0]?.body.guid] })
  await publish(api, alice, { text: 'private', public: false, aspectIds: [friendsAspectId] })
  const poll = await publish(api, alice, {
    text: 'poll and place',
    public: true,
    poll: { question: 'Which?', answers: ['one', 'two'] },
    location: { address: 'Ulm', lat: '48.3984', lng: '9.9916' },
  })
  await alice.post(`/posts/${api.bobPost}/reshares`)

  await comment(alice, api.bobPost)
  await alice.post(`/posts/${api.bobPost}/likes`)
  const byBob = await comment(bob, api.alicePost)
  await alice.post(`/posts/${api.alicePost}/comments/${byBob}/likes`)
  await vote(alice, api.bobPoll)
  await bob.post(`/posts/${api.alicePost}/likes`)
  const byAlice = await comment(alice, api.alicePost)
  await bob.post(`/posts/${api.alicePost}/comments/${byAlice}/likes`)
  await vote(bob, poll)
}

async function comment(who: ApiPerson, post: string): Promise<string> {
  const { body } = await who.post(`/posts/${post}/comments`, { body: `a comment of ${who.guid}` })
  return body.guid
}

async function vote(who: ApiPerson, post: string): Promise<void> {
  const { body } = await who.get(`/posts/${post}`)
  await who.post(`/posts/${post}/vote`, { poll_answer: body.poll.poll_answers[0].id })
}

function readZip(file: string): Promise<ReadonlyMap<string, Buffer>> {
  return new Promise((resolve, reject) => {
    yauzl.open(file, { lazyEntries: true }, (fault, zip) => {
      if (fault) return reject(fault)
      const entries = new Map<string, Buffer>()
      zip.on('entry', (entry) => {
        zip.openReadStream(entry, async (failure, stream) => {
          if (failure) return reject(failure)
          const chunks: Buffer[] = []
          for await (const chunk of stream) chunks.push(chunk)
          entries.set(entry.fileName, Buffer.concat(chunks))
          zip.readEntry()
        })
      })
      zip.on('end', () => resolve(entries)).on('error', reject)
      zip.readEntry()
    })
  })
}
