import { existsSync } from 'node:fs'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { commentBy, postBy } from '../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import type { TestPerson } from '../support/people/local-users.js'
import { recordInboundQueue } from '../support/queues/inbound-queue-recorder.js'
import { type AttackedPod, dropped, startAttackedPod } from './attacked-pod.js'
import { forgedEnvelope } from './forged-envelope.js'

/** The level of log lines that a pod in production does not write. */
const DEBUG = 20

let fakePods: FakePods
let pod: AttackedPod
let ann: TestPerson
let quin: FakePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods })
  ;({ ann } = await pod.people('ann'))
  quin = fakePods.person('quin@q.example')
  await pod.addRemotePerson(quin)
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

const MEGABYTE = 1024 * 1024
const laughs = `<!DOCTYPE a [<!ENTITY e0 "lol">${Array.from({ length: 9 }, (_, level) => `<!ENTITY e${level + 1} "${`&e${level};`.repeat(10)}">`).join('')}]><a>&e9;</a>`
const many = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index)).join('')

const bombs: readonly (readonly [string, () => string | Buffer])[] = [
  ['a billion laughs', () => laughs],
  ['a file', () => '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a>&f;</a>'],
  ['an address', () => '<!DOCTYPE a [<!ENTITY f SYSTEM "http://q.example/external">]><a>&f;</a>'],
  ['a parameter entity', () => '<!DOCTYPE a [<!ENTITY % p SYSTEM "http://q.example/external">%p;]><a/>'],
  ['an outer document type', () => '<!DOCTYPE a SYSTEM "http://q.example/external"><a/>'],
  ['100 000 levels', () => `${'<a>'.repeat(100_000)}${'</a>'.repeat(100_000)}`],
  ['50 000 attributes', () => `<a ${many(50_000, (index) => `a${index}="" `)}/>`],
  ['200 000 siblings', () => `<a>${'<b/>'.repeat(200_000)}</a>`],
  ['two megabytes of blanks', () => `${' '.repeat(2 * MEGABYTE)}<a/>`],
  ['UTF-16', () => Buffer.from('\ufeff<?xml version="1.0" encoding="UTF-16"?><a/>', 'utf16le')],
  ['a declared UTF-16', () => '<?xml version="1.0" encoding="UTF-16"?><a/>'],
  ['a declared UTF-7', () => '<?xml version="1.0" encoding="UTF-7"?><a>+ADw-b+AD4-</a>'],
  ['a NUL as a reference', () => '<status_message><text>&#0;</text></status_message>'],
  ['a NUL as it is', () => '<status_message><text>\0</text></status_message>'],
  ['half a pair', () => '<status_message><text>&#xD800;</text></status_message>'],
  ['two roots', () => '<a/><a/>'],
  ['no root', () => '<!-- -->'],
  ['bytes that are not UTF-8', () => Buffer.from([0x3c, 0x61, 0x3e, 0xff, 0xfe, 0x3c, 0x2f, 0x61, 0x3e])],
]

describe('S30: XML that holds', () => {
  it.each(bombs)('%s is rejected as invalid, signed or not, without a request to any pod', async (_what, make) => {
    const xml = make()
    const asked = fakePods.requests.length

    expect(await pod.send(forgedEnvelope(quin, xml))).toEqual(dropped('InvalidPayload'))
    expect(await pod.send(xml.toString())).toEqual(dropped('InvalidEnvelope'))
    expect(fakePods.requests.slice(asked)).toEqual([])
  })

  it('no part of a file gets into a text', async () => {
    expect(existsSync('/etc/passwd')).toBe(true)
    const post = writeEntity(postBy(quin)).replace('Hello', '&f;')

    const { changes } = await pod.send(
      forgedEnvelope(quin, `<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]>${post}`),
    )

    expect(changes).toEqual({})
  })

  it('a repeated property has its first value', async () => {
    const post = postBy(quin)
    const xml = writeEntity(post).replace('<text>Hello</text>', '<text>First</text><text>Second</text>')

    await pod.send(forgedEnvelope(quin, xml))

    expect(await pod.db('posts').where({ guid: post.guid }).pluck('text')).toEqual(['First'])
  })

  it('a text is stored unchanged, and no part of it becomes a value of another type', async () => {
    const texts = [' 0 ', 'null', 'true', '1e3', '<b>&amp;</b>', '\t\n x']
    const posts = texts.map((text) => postBy(quin, { text }))

    await pod.send(...posts.map((post) => forgedEnvelope(quin, writeEntity(post))))

    const kept = await pod
      .db('posts')
      .whereIn(
        'guid',
        posts.map(({ guid }) => guid),
      )
      .orderBy('id')
      .pluck('text')
    expect(kept).toEqual(texts)
  })
})

describe('S31: a body that is packed', () => {
  const packed: readonly (readonly [string, (text: string) => Buffer])[] = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['GZIP', gzipSync],
    ['identity, gzip', gzipSync],
    ['zstd', (text) => Buffer.from(text)],
  ]

  it.each(packed)('a body compressed as %s is refused by every endpoint', async (encoding, pack) => {
    const bomb = pack(' '.repeat(MEGABYTE)).subarray(0, 10_000)
    const headers = { 'content-encoding': encoding, authorization: `Bearer ${ann.token}` }
    const places = [
      ['POST', '/receive/public', 'application/magic-envelope+xml'],
      ['POST', `/receive/users/${ann.account.guid}`, 'application/json'],
      ['PATCH', '/api/v1/user', 'application/json'],
      ['POST', '/api/openid_connect/clients', 'application/json'],
      ['POST', '/api/openid_connect/access_tokens', 'application/x-www-form-urlencoded'],
      ['POST', '/users/sign_in', 'application/x-www-form-urlencoded'],
    ] as const
    for (const [method, url, type] of places) {
      const answer = await pod.app.inject({ method, url, payload: bomb, headers: { ...headers, 'content-type': type } })
      expect([url, answer.statusCode]).toEqual([url, 415])
    }
  })
})

describe('S32: fields that no client may set', () => {
  const stolen = {
    guid: newGuid(),
    id: 1,
    admin: true,
    role: 'admin',
    email: 'x@evil.example',
    owner: 'mallory',
    owner_id: 1,
    person_id: 1,
    user_id: 1,
    author: { guid: newGuid() },
    author_id: 1,
    private_key: 'x',
    serialized_private_key: 'x',
    password: 'x',
    network_id: 'mallory@evil.example',
    diaspora_id: 'mallory@evil.example',
    created_at: '1999-01-01T00:00:00Z',
    locked_at: null,
    followed: true,
    __proto__: { admin: true },
    constructor: { prototype: { admin: true } },
  }

  it('change nothing about their own profile', async () => {
    const state = async () => ({
      users: await pod.db('users').orderBy('id'),
      people: await pod.db('people').orderBy('id').select('id', 'guid', 'address', 'publicKey', 'podId'),
      secrets: await pod.db('user_secrets').orderBy('userId'),
    })
    const before = await state()

    const { statusCode } = await ann.patch('/api/v1/user', { ...stolen, bio: 'Mine' })

    expect(statusCode).toBe(200)
    expect(await state()).toEqual(before)
  })

  it('give a comment no other author, guid or time', async () => {
    const post = postBy(quin)
    await pod.send(forgedEnvelope(quin, writeEntity(post)))

    const answer = await ann.post(`/api/v1/posts/${post.guid}/comments`, { ...stolen, body: 'Mine' })

    expect(answer.statusCode).toBe(201)
    const [comment] = await pod
      .db('comments')
      .join('people', 'people.id', 'comments.authorId')
      .where({ text: 'Mine' })
      .select('comments.guid', 'comments.createdAt', 'people.address')
    expect(comment).toMatchObject({ address: ann.account.address })
    expect(comment.guid).not.toBe(stolen.guid)
    expect(comment.createdAt.getUTCFullYear()).toBeGreaterThan(2000)
  })

  it('give a client no id, no secret and no time of its own', async () => {
    const answer = await pod.app.inject({
      method: 'POST',
      url: '/api/openid_connect/clients',
      payload: {
        ...stolen,
        redirect_uris: ['https://c.example/'],
        client_id: 'mine',
        client_secret: 'mine',
        client_id_issued_at: 1,
      },
    })

    expect(answer.statusCode).toBe(201)
    expect(answer.json()).not.toMatchObject({ client_id: 'mine' })
    expect(answer.json().client_secret).not.toBe('mine')
    expect(answer.json().client_id_issued_at).toBeGreaterThan(1)
  })

  it('change no prototype', () => {
    expect(({} as Record<string, unknown>)['admin']).toBeUndefined()
  })
})

describe('S33: a body of wrong values', () => {
  it.each([
    'application/json ;',
    'application/json;',
    'application/json\t;charset=utf-8',
    'application/json ; charset=utf-8',
    'APPLICATION/JSON',
    'application/json, text/plain',
    'application/jsonx',
    'application/json/x',
    'application/ json',
    'application/vnd.api+json',
    'text/json',
    'application/json;charset=utf-16',
    'application/json\u00a0',
    ' application/json',
    'application',
    ';',
    '',
  ])('is stored under no content type: %j', async (type) => {
    const before = await pod.db('profiles').orderBy('personId')
    for (const payload of ['{"bio":{"a":1}}', '{"bio":["x"],"nsfw":{}}', '{"tags":"x","bio":5}']) {
      const { statusCode } = await pod.app.inject({
        method: 'PATCH',
        url: '/api/v1/user',
        payload,
        headers: { authorization: `Bearer ${ann.token}`, 'content-type': type },
      })
      expect([400, 415, 422]).toContain(statusCode)
    }
    expect(await pod.db('profiles').orderBy('personId')).toEqual(before)
  })
})

it('S34: the web process queues any message of another pod unchanged and without a log line', async () => {
  await using attackedPod = await startAttackedPod({ fakePods, queues: [] })
  await using taken = recordInboundQueue(attackedPod)
  const line = attackedPod.recordedLog.lines.length
  const messages = [laughs, '['.repeat(100_000), '<env', `${'<a>'.repeat(100_000)}`]

  for (const message of messages) expect(await attackedPod.post('/receive/public', message)).toBe(202)

  const came = await taken.until(messages.length)
  expect(came.map(({ envelope }) => envelope).toSorted()).toEqual(messages.toSorted())
  const written = attackedPod.recordedLog.lines.slice(line)
  expect(written.filter((text) => JSON.parse(text).level > DEBUG)).toEqual([])
})

it('S30: a text that looks like markup stays a text', async () => {
  const post = postBy(quin)
  await pod.send(forgedEnvelope(quin, writeEntity(post)))
  const comment = commentBy(quin, post, { text: '</text><text>&lt;b&gt;' })

  await pod.send(forgedEnvelope(quin, writeEntity(comment)))

  expect(await pod.db('comments').where({ guid: comment.guid }).pluck('text')).toEqual(['</text><text>&lt;b&gt;'])
})
