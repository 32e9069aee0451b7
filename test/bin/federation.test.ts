import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { writeHcard } from '../../src/protocol/discovery/discovery-documents.js'
import type { StatusMessageEntity } from '../../src/protocol/entities/posts.js'
import { cardOf, type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod, type Settings } from './program.js'

/** Commands about other pods, one of which runs completely on loopback. */
describe('the commands about other pods', { timeout: 180_000 }, () => {
  let place: Place
  let fakePods: FakePods
  let settings: Settings
  let host: string
  let quin: FakePerson
  let post: StatusMessageEntity

  beforeAll(async () => {
    place = await makePlace({ ...KNOWN_POD, ALLOW_PRIVATE_ADDRESSES: 'true' })
    settings = place.settings
    fakePods = await startFakePods()
    host = `localhost:${fakePods.server.port}`
    quin = fakePods.person(`quin@${host}`)
    post = {
      type: 'status_message',
      author: quin.address,
      guid: newGuid(),
      created_at: new Date('2024-05-06T07:08:09Z'),
      public: true,
      text: 'Hello #world\u009b31m',
      photos: [],
    }
    fakePods.serve(quin, post)
  })
  afterAll(async () => {
    await fakePods.close()
    await place.remove()
  })

  function json(path: string, document: unknown) {
    fakePods.script(`${host}${path}`, (_request, response) =>
      response.setHeader('content-type', 'application/json').end(JSON.stringify(document)),
    )
  }

  /** Only for these persons: a missing person is still unknown. */
  function webFinger(person: FakePerson, document: unknown) {
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
      if (url.searchParams.get('resource') !== `acct:${person.address}`) return response.writeHead(404).end()
      return response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify(document))
    })
  }

  function serveWell(): void {
    fakePods.script(`${host}/`, (_request, response) =>
      response.setHeader('content-type', 'text/html').end('<h1>A pod</h1>'),
    )
    json('/.well-known/nodeinfo', {
      links: [
        { rel: 'http://nodeinfo.diaspora.software/ns/schema/2.0', href: `http://${host}/nodeinfo/2.0` },
        { rel: 'http://nodeinfo.diaspora.software/ns/schema/1.0', href: `http://${host}/nodeinfo/1.0` },
      ],
    })
    json('/nodeinfo/2.0', { version: '2.0', software: { name: 'otherpod', version: '3.1' }, protocols: ['diaspora'] })
    for (const size of ['large', 'medium', 'small']) {
      fakePods.script(`${host}/uploads/quin-${size}.png`, (_request, response) =>
        response.setHeader('content-type', 'image/png').end('png'),
      )
    }
  }

  it.each(['it', `diaspora://quin@q.example/profile/${newGuid()}`, 'https://pod.example/%zz'])(
    'fetch does not take %j, and says what it takes',
    async (what) => {
      const { code, stdout, stderr } = await pod(['fetch', what], settings)

      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/Expected an address|cannot be fetched/)
    },
  )

  it('fetch requires a pod for a guid', async () => {
    expect(await pod(['fetch', newGuid()], settings)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--from'),
    })
    expect(await pod(['fetch', newGuid(), '--from', 'a b'], settings)).toMatchObject({ code: 2 })
  })

  it('fetch finds a person and prints the profile', async () => {
    const { code, stdout } = await pod(['fetch', `acct:${quin.address}`, '--json'], settings)

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      kind: 'person',
      address: quin.address,
      guid: quin.guid,
      name: 'quin Tester',
      pod: `https://${host}`,
      avatar: `https://${host}/uploads/quin-medium.png`,
      key_bits: 1024,
      closed: false,
    })
  })

  it.each([
    ['a link to its page', () => [`http://${host}/posts/${post.guid}`]],
    ['a short link', () => [`http://${host}/p/${post.guid}`]],
    ['a diaspora:// link', () => [`web+diaspora://${quin.address}/post/${post.guid}`]],
    ['its guid and a pod', () => [post.guid, '--from', host]],
    ['its guid and a person', () => [post.guid, '--from', quin.address]],
  ])('fetch stores a post by %s', async (_what, words) => {
    const { code, stdout } = await pod(['fetch', ...words(), '--json'], settings)

    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      kind: 'post',
      guid: post.guid,
      type: 'StatusMessage',
      author: quin.address,
      public: true,
      created_at: '2024-05-06T07:08:09.000Z',
      text: post.text,
      photos: 0,
      poll: null,
      tags: ['world'],
      root: null,
    })
  })

  it('fetch stores older posts of a person on demand', async () => {
    const rosa = fakePods.person(`rosa@${host}`)
    const older = { ...post, author: rosa.address, guid: newGuid() }
    fakePods.serve(rosa, older)
    json(`/people/${rosa.guid}/stream`, [{ guid: older.guid, public: true, author: { guid: rosa.guid } }])
    const listFetched = async () =>
      JSON.parse((await pod(['fetch', rosa.address, '--older-posts', '--json'], settings)).stdout)

    expect(await listFetched()).toMatchObject({ kind: 'person', posts_fetched: 1 })
    expect(await listFetched()).toMatchObject({ kind: 'person', posts_fetched: 0 })
  })

  it('fetch treats an argument that looks like an address as a guid when a pod is given', async () => {
    const guid = `abcdef0123456789@${host.split(':')[0]}`
    fakePods.serve(quin, { ...post, guid })

    expect(await pod(['fetch', guid, '--from', host], settings)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(guid),
    })
  })

  it('fetch prints a text without terminal control sequences', async () => {
    const { stdout } = await pod(['fetch', post.guid, '--from', host], settings)

    expect(stdout).toContain('Hello #world\ufffd31m')
    expect(stdout).not.toContain('\u009b')
  })

  it('fetch prints an error in one sentence', async () => {
    const missing = newGuid()

    expect(await pod(['fetch', `nobody@${host}`], settings)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/^nobody@localhost:\d+ was not found: .* was answered with status 404\.\n$/),
    })
    expect(await pod(['fetch', missing, '--from', host], settings)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(`^${missing} could not be fetched: .* was answered with status 404\\.\n$`),
      ),
    })
    expect(await pod(['fetch', quin.address], { ...settings, ALLOW_PRIVATE_ADDRESSES: '' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not a public address'),
    })
  })

  it('probe reports no errors of a correct pod, and its warnings', async () => {
    serveWell()

    const { code, stdout } = await pod(['probe', quin.address, '--json'], settings)

    const { target, healthy, findings } = JSON.parse(stdout)
    expect({ code, target, healthy }).toEqual({ code: 0, target: quin.address, healthy: true })
    const stateOf = Object.fromEntries(
      findings.map(({ check, state }: { check: string; state: string }) => [check, state]),
    )
    expect(stateOf).toEqual({
      subject: 'ok',
      links: 'ok',
      pod: 'ok',
      hcard: 'ok',
      uid: 'ok',
      fn: 'ok',
      given_name: 'ok',
      family_name: 'ok',
      nickname: 'ok',
      searchable: 'ok',
      key: 'warn', // of 1024 bits
      entity_photo: 'ok',
      entity_photo_medium: 'ok',
      entity_photo_small: 'ok',
      discovery: 'ok',
      known: 'ok',
      'front page': 'ok',
      TLS: 'warn', // on loopback
      nodeinfo: 'ok',
      fetch: 'ok',
      webfinger: 'ok',
      noted: 'ok',
    })
    expect(stdout).toContain('It runs otherpod 3.1.')
  })

  it.each([
    [
      'another subject',
      'subject',
      (document: ReturnType<FakePods['webFinger']>) => ({ ...document, subject: 'acct:remy@r.example' }),
    ],
    ['no links', 'links', ({ subject }: ReturnType<FakePods['webFinger']>) => ({ subject })],
  ])('probe reports %s', async (_what, check, change) => {
    const zoe = fakePods.person(`zoe@${host}`)
    webFinger(zoe, change(fakePods.webFinger(zoe)))

    const { code, stdout, stderr } = await pod(['probe', zoe.address, '--json'], settings)

    expect({ code, stderr }).toEqual({ code: 1, stderr: '{"error":"One check failed."}\n' })
    expect(JSON.parse(stdout)).toMatchObject({ healthy: false })
    expect(JSON.parse(stdout).findings.filter(({ state }: { state: string }) => state === 'fail')).toMatchObject([
      { check },
    ])
  })

  it('probe reports each wrong field of an hCard', async () => {
    const zoe = fakePods.person(`zoe@${host}`)
    webFinger(zoe, fakePods.webFinger(zoe))
    const wrong = {
      guid: 'short',
      publicKey: 'none',
      firstName: 'a;b',
      imageUrl: '',
      imageUrlSmall: 'data:image/png,x/',
    }
    fakePods.script(`${host}/hcard/users/${zoe.guid}`, (_request, response) =>
      response
        .setHeader('content-type', 'text/html')
        .end(writeHcard({ ...cardOf(zoe), ...wrong }).replace('class="fn"', '')),
    )

    const { code, stdout } = await pod(['probe', zoe.address], settings)

    expect(code).toBe(1)
    const failed = stdout.split('\n').flatMap((line) => /^fail +(\S+)/.exec(line)?.[1] ?? [])
    expect(failed).toEqual(['uid', 'fn', 'given_name', 'key', 'entity_photo', 'discovery'])
    expect(stdout).toMatch(/^warn +entity_photo_small /m)
  })

  it('probe reports a pod with a changed key', async () => {
    const moved = fakePods.person(quin.address, { guid: quin.guid })
    webFinger(moved, fakePods.webFinger(moved))

    const { code, stdout } = await pod(['probe', quin.address, '--json'], settings)

    expect(code).toBe(1)
    expect(JSON.parse(stdout).findings).toContainEqual(expect.objectContaining({ check: 'known', state: 'fail' }))
  })

  it('probe reports a pod that answers every request with success, and one that does not answer', async () => {
    for (const path of ['/', '/.well-known/webfinger'])
      fakePods.script(`${host}${path}`, (_request, response) => response.end('yes'))

    const { code, stdout } = await pod(['probe', host, '--json'], settings)
    expect(code).toBe(1)
    expect(JSON.parse(stdout).findings).toContainEqual(expect.objectContaining({ check: 'webfinger', state: 'fail' }))

    const gone = await startFakePods()
    await gone.close()
    const away = await pod(['probe', `http://localhost:${gone.server.port}/`, '--json'], settings)
    expect(away).toMatchObject({ code: 1, stdout: expect.stringContaining('net_failed') })
  })

  it.each(['a b', 'https://'])('probe does not take %j', async (target) => {
    expect(await pod(['probe', target], settings)).toMatchObject({ code: 2, stdout: '' })
  })
})
