import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { DISCOVERY_LIMITS } from '../../src/federation/discovery/limits.js'
import type { RemoteLimits } from '../../src/federation/remote-pod/limits.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { RemotePodClient } from '../../src/services/remote-pod-client.js'
import { addPost } from '../support/databases/rows.js'
import { commentBy, migrationOf, postBy, reshareBy } from '../support/federation/entities.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { register } from '../support/http/oidc-client.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { type AttackedPod, type Consequences, startAttackedPod } from './attacked-pod.js'

let fakePods: FakePods
let pod: AttackedPod
let way: RemotePodClient & { close(): Promise<void> }
/** Connection targets other than the pods of the test. */
const breaches: string[] = []
const names = new Map<string, readonly string[]>()
let hosts = 0
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({
    fakePods,
    change: (opened) => ({
      ...opened,
      remotePods: { get: (...call) => way.get(...call), post: (...call) => way.post(...call) },
    }),
  })
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})
beforeEach(async () => {
  await pod.waitUntilIdle()
  await pod.db.raw('truncate posts, outbox, waiting, signer_lookups cascade')
  breaches.length = 0
  names.clear()
  open({})
})

/** The way out as it is, but that the pods `h1.example`, `h2.example` … are on this machine. */
function open(limits: Partial<RemoteLimits>): void {
  const isFakeHost = (host: string | undefined) => /^h[0-9]+\.example$/.test(host ?? '')
  const opened = Array.from({ length: hosts + 20 }, (_, index) => `h${index}.example`)
  way = fakePods.remotePods({
    allowPrivate: new Set(opened.flatMap((host) => [`${host}:80`, `${host}:443`])),
    limits: { exchangeMs: 1_000, ...limits },
    now: () => 0,
    resolve: async (name) => names.get(name) ?? ['127.0.0.1'],
    dial: (options) => {
      if (isFakeHost(options.host)) return connect(options.port === 443 ? 1 : fakePods.server.port, '127.0.0.1')
      breaches.push(`${options.host}:${options.port}`)
      return connect(1, '127.0.0.1')
    },
  })
}

/** An unknown person on their own pod. */
function newRemotePerson(): { readonly person: FakePerson; readonly host: string } {
  hosts += 1
  const host = `h${hosts}.example`
  return { person: fakePods.person(`eve@${host}`), host }
}

/** Their WebFinger document with one link changed. */
function linking(person: FakePerson, rel: string, href: string): string {
  const document = fakePods.webFinger(person)
  const links = document.links.map((link) => (link.rel.endsWith(rel) ? { ...link, href } : link))
  return JSON.stringify({ ...document, links })
}

/** Except for waiting messages and the work that was given up for them. */
function lasting({ changes: { waiting: _, outbox: __, ...rest } }: Consequences): object {
  return rest
}

const WEBFINGER = '/.well-known/webfinger'
const from = (person: FakePerson, entity: Entity = postBy(person)) => envelopeOf(person, entity)
const redirect = (location: string) => (_request: unknown, response: ServerResponse) =>
  void response.writeHead(302, { location }).end()
const asked = (host: string, path = '') => fakePods.requests.filter((request) => request.startsWith(`${host}${path}`))

/** Every way in which an unknown sender makes the pod send a request, using posted messages only. */
const leads: readonly (readonly [string, (url: string) => readonly string[]])[] = [
  ['the address of a signer', (url) => [from({ ...newRemotePerson().person, address: `eve@${new URL(url).host}` })]],
  [
    'a redirect of WebFinger',
    (url) => {
      const { person, host } = newRemotePerson()
      fakePods.script(`${host}${WEBFINGER}`, redirect(url))
      return [from(person)]
    },
  ],
  [
    'the place of an hCard',
    (url) => {
      const { person, host } = newRemotePerson()
      fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(linking(person, '/hcard', url)))
      return [from(person)]
    },
  ],
  [
    'a redirect of an hCard',
    (url) => {
      const { person, host } = newRemotePerson()
      fakePods.script(`${host}/hcard/users/${person.guid}`, redirect(url))
      return [from(person)]
    },
  ],
  [
    'the pod of a person',
    (url) => {
      const { person, host } = newRemotePerson()
      fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
        response.end(linking(person, '/seed_location', url)),
      )
      const root = postBy(person)
      const { person: other } = newRemotePerson()
      return [from(person), from(other, reshareBy(other, root))]
    },
  ],
  [
    'a redirect of a fetch',
    (url) => {
      const { person, host } = newRemotePerson()
      const root = postBy(person)
      fakePods.script(`${host}/fetch/post/${root.guid}`, redirect(url))
      const { person: other } = newRemotePerson()
      return [from(other, reshareBy(other, root))]
    },
  ],
]

const privatePlaces = [
  'http://127.0.0.1/',
  'https://127.0.0.1/',
  'https://127.1/',
  'https://2130706433/',
  'https://0x7f.1/',
  'https://0/',
  'https://[::1]/',
  'https://[::ffff:127.0.0.1]/',
  'https://[::127.0.0.1]/',
  'https://[64:ff9b::7f00:1]/',
  'https://[2002:7f00:1::]/',
  'https://[fd00::1]/',
  'https://localhost/',
  'https://10.0.0.1/',
  'https://169.254.169.254/latest/meta-data/',
  'https://100.64.0.1/',
  'https://192.168.1.1/',
  'https://198.18.0.1/',
  'https://private.example/',
  'https://mixed.example/',
  'https://zone.example/',
]

async function postAll(messages: readonly string[]): Promise<void> {
  open({})
  for (const message of messages) expect(await pod.post('/receive/public', message)).toBe(202)
  await pod.waitUntilIdle(30_000)
}

describe.each(leads)('%s', (what, lead) => {
  it('S41: leads to no private address, in 21 spellings', async () => {
    names.set('private.example', ['10.1.2.3'])
    names.set('mixed.example', ['93.184.215.14', '127.0.0.1'])
    names.set('zone.example', ['fe80::1%eth0'])
    await postAll(privatePlaces.flatMap(lead))

    expect(breaches).toEqual([])
  })

  it('S40: leads to no other service, no plain http and no user', async () => {
    names.set('public.example', ['93.184.215.14'])
    const places = [
      ...[21, 22, 25, 80, 110, 1023, 2049, 6000, 6379, 6667].map((port) => `https://public.example:${port}/`),
      'http://public.example/',
      'ftp://public.example/',
      'gopher://public.example/',
      'file:///etc/passwd',
      'data:text/html,x',
      'https://eve@public.example/',
      'https://eve:secret@public.example/',
      'https://public.example./',
      '//public.example:22/',
    ]
      .map((url) => new URL(url, 'https://h1.example/'))
      // Of these nothing counts but host and port, and with the usual ones there is nothing wrong with them.
      .filter(
        ({ port }) => !['', '80'].includes(port) || !['the address of a signer', 'the pod of a person'].includes(what),
      )
    await postAll(places.flatMap(({ href }) => lead(href)))

    expect(breaches).toEqual([])
  })
})

it('S41: a name that resolves to another address the next time is checked on each connection', async () => {
  const answers = [['10.0.0.1'], ['127.0.0.1'], ['169.254.169.254']]
  const dialled: unknown[] = []
  way = fakePods.remotePods({
    allowPrivate: 'none',
    resolve: async () => answers.shift() ?? ['10.0.0.1'],
    dial: (options) => {
      dialled.push(options.host)
      return connect(1, '127.0.0.1')
    },
  })

  await pod.send(from(fakePods.person('eve@rebind.example')))

  expect(answers.length).toBeLessThan(3)
  expect(dialled).toEqual([])
})

describe('S42: redirects', () => {
  it('in a circle are followed four times', async () => {
    const { person, host } = newRemotePerson()
    fakePods.script(`${host}/circle`, redirect(`http://${host}/circle`))
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
      response.end(linking(person, '/hcard', `http://${host}/circle`)),
    )

    const { changes } = await pod.send(from(person))
    const discoveries = asked(host, WEBFINGER).length

    expect(changes['people']).toBeUndefined()
    expect(asked(host, '/circle')).toHaveLength(discoveries * 5)
  })

  it('of a delivery are not followed at all', async () => {
    const { host } = newRemotePerson()
    open({})
    fakePods.script(`${host}/receive/public`, redirect(`http://${host}/elsewhere`))

    expect(await way.post(`http://${host}/receive/public`, 'text/plain', 'x')).toMatchObject({ status: 302 })
    expect(asked(host)).toEqual([`${host}/receive/public`])
  })
})

describe('S43: an answer that', () => {
  const endless = (response: ServerResponse, text: string | Buffer) => {
    response.on('error', () => undefined)
    const more = () => {
      while (!response.destroyed && response.write(text)) {
        // as fast as it goes
      }
    }
    response.on('drain', more)
    more()
  }
  it.each<[string, (response: ServerResponse) => void]>([
    ['never comes', () => undefined],
    ['never gets beyond its headers', (response) => response.flushHeaders()],
    [
      'drips',
      (response) => {
        const timer = setInterval(() => response.write(' '), 20)
        response.on('close', () => clearInterval(timer))
      },
    ],
    ['never ends', (response) => endless(response, Buffer.alloc(65_536, ' '))],
    ['says it has a gigabyte', (response) => endless(response.writeHead(200, { 'content-length': 2 ** 30 }), 'x')],
    [
      'is a bomb',
      (response) => response.setHeader('content-encoding', 'gzip').end(gzipSync(Buffer.alloc(64 * 2 ** 20))),
    ],
    ['has an unrequested encoding', (response) => response.setHeader('content-encoding', 'x-own').end('{}')],
    ['has endless headers', (response) => response.writeHead(200, { 'x-long': 'x'.repeat(100_000) }).end('{}')],
  ])('%s creates no person, and the connection is closed', async (_what, answer) => {
    open({})
    const { person, host } = newRemotePerson()
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => answer(response))

    await expect(discoverPerson(pod, person.address, { withinMs: 300 })).rejects.toMatchObject({
      fault: 'DiscoveryFailed',
    })

    expect(asked(host)).toHaveLength(1)
    await way.close()
    await fakePods.server.idle()
  })
})

describe('S44: a pod that answers', () => {
  it.each<[string, (person: FakePerson, victim: FakePerson) => string]>([
    ['with the document of another person', (_person, victim) => JSON.stringify(fakePods.webFinger(victim))],
    [
      'with a subject that only looks the same',
      (person) => linking(person, '/hcard', 'x').replace('acct:eve', 'acct:eve%20'),
    ],
    ['with no subject', (person) => JSON.stringify({ ...fakePods.webFinger(person), subject: undefined })],
    [
      'with a list of subjects',
      (person) => JSON.stringify({ ...fakePods.webFinger(person), subject: [person.address] }),
    ],
    ['that its person is local', (person) => linking(person, '/seed_location', 'https://pod.example/')],
    ['that its person is local, on www', (person) => linking(person, '/seed_location', 'https://www.pod.example/')],
    ['with an hCard that is not a web page', (person) => linking(person, '/hcard', 'javascript:alert(1)')],
  ])('%s creates no person', async (_what, document) => {
    const { person, host } = newRemotePerson()
    const { person: victim } = newRemotePerson()
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(document(person, victim)))

    expect(lasting(await pod.send(from(person)))).toEqual({})
  })
})

describe('S45: the identity of a local user', () => {
  it('is not taken by an hCard with their guid', async () => {
    const { ann } = await pod.people('ann')
    const known = await pod.db('people').where({ guid: ann.account.guid }).first('guid')
    const { person, host } = newRemotePerson()
    const thief = fakePods.person(person.address, { guid: known.guid })
    fakePods.script(`${host}/hcard/users/${thief.guid}`, (_request, response) => response.end(fakePods.hcard(thief)))

    expect(lasting(await pod.send(from(thief)))).toEqual({})
    expect(await pod.db('people').where({ guid: ann.account.guid }).pluck('address')).toEqual(['ann@pod.example'])
  })

  it.each(['alice@pod.example', 'alice@www.pod.example', 'alice@pod.example:443'])(
    '%s creates no person and causes no request',
    async (address) => {
      const before = fakePods.requests.length

      const { changes } = await pod.send(from(fakePods.person(address)))

      expect(changes['people']).toBeUndefined()
      expect(fakePods.requests.slice(before)).toEqual([])
      expect(breaches).toEqual([])
    },
  )
})

describe('S46: an answer to a fetch', () => {
  it.each<[string, (author: FakePerson, root: ReturnType<typeof postBy>, mallory: FakePerson) => string]>([
    ['that is another post', (author) => from(author)],
    ['by another person', (_author, root, mallory) => from(mallory, postBy(mallory, { guid: root.guid }))],
    ['signed by another person', (_author, root, mallory) => from(mallory, root)],
    ['that is not a post', (author, root) => from(author, commentBy(author, root, { guid: root.guid }))],
    ['that is private', (author, root) => from(author, { ...root, public: false })],
    ['that is not an envelope', () => '<html>hello</html>'],
    ['that is nothing', () => ''],
  ])('%s is not taken', async (_what, answer) => {
    const [{ person: author, host }, { person: mallory }, { person: resharer }] = [
      newRemotePerson(),
      newRemotePerson(),
      newRemotePerson(),
    ]
    for (const one of [author, mallory, resharer]) await pod.addRemotePerson(one)
    const root = postBy(author)
    fakePods.script(`${host}/fetch/post/${root.guid}`, (_request, response) =>
      response.end(answer(author, root, mallory)),
    )

    await pod.send(from(resharer, reshareBy(resharer, root)))

    // A post that a third person has really signed is valid and could have been sent by them; it is neither the root nor reshared.
    const authors = await pod.db('posts').join('people', 'people.id', 'posts.authorId').pluck('address')
    expect(authors.filter((address) => address !== mallory.address)).toEqual([])
    expect(asked(host, `/fetch/post/${root.guid}`).length).toBeGreaterThan(0)
  })
})

describe('S47: an attacker who names a victim pod', () => {
  it('causes a bounded number of requests a minute to it, for any number of named people', async () => {
    open({ fetchesPerHostPerMinute: 25 })
    const { host } = newRemotePerson()
    const [mallory] = [fakePods.person('mallory@nobody.example')]
    const named = Array.from({ length: 40 }, (_, index) => ({ ...mallory, address: `p${index}@${host}` }))

    for (const person of named) await pod.post('/receive/public', from(person))
    await pod.waitUntilIdle(30_000)

    expect(asked(host).length).toBeGreaterThan(0)
    expect(asked(host).length).toBeLessThanOrEqual(25)
  })

  it('leads no further than five posts down a chain', async () => {
    const { person, host } = newRemotePerson()
    await pod.addRemotePerson(person)
    const chain = Array.from({ length: 12 }, () => postBy(person).guid)
    for (const [index, guid] of chain.entries()) {
      const root = { guid: chain[index + 1] ?? newGuid(), author: person.address }
      fakePods.serve(person, { ...reshareBy(person, root), guid })
    }

    await pod.send(from(person, reshareBy(person, { guid: chain[0] ?? '', author: person.address })))

    const fetched = new Set(asked(host, '/fetch/'))
    expect(fetched.size).toBe(6)
  })

  it('leads no further than ten moves down a chain of people who have moved', async () => {
    const people = Array.from({ length: 5 }, () => newRemotePerson())
    for (const [index, { person, host }] of people.entries()) {
      const successor = people[index + 1]?.person
      if (successor === undefined) continue
      const path = `${host}/fetch/account_migration/${person.guid}`
      const document = fakePods.webFinger(person)
      const link = { rel: 'successor-version', href: `https://${path}` }
      fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
        response.end(JSON.stringify({ ...document, links: [...document.links, link] })),
      )
      fakePods.script(path, (_request, response) => void response.end(from(person, migrationOf(person, successor))))
    }
    open({})
    const [first] = people

    if (first !== undefined)
      await discoverPerson(pod, first.person.address, { movesFollowed: DISCOVERY_LIMITS.movesFollowed - 2 })
    await pod.waitUntilIdle()

    const moves = people.map(({ host }) => asked(host, '/fetch/account_migration/').length)
    expect(moves).toEqual([1, 1, 0, 0, 0])
    expect(await pod.db('accountMigrations')).toHaveLength(2)
  })

  it('has ten links of a text followed, and not eleven', async () => {
    const { person, host } = newRemotePerson()
    await pod.addRemotePerson(person)
    const links = Array.from({ length: 30 }, () => `diaspora://${person.address}/post/${newGuid()}`)

    await pod.send(from(person, postBy(person, { text: links.join(' ') })))

    expect(new Set(asked(host, '/fetch/')).size).toBe(10)
  })

  it('has fifty looked for who are only mentioned on another pod, of a thousand', async () => {
    const [{ person }, { host: victim }] = [newRemotePerson(), newRemotePerson()]
    await pod.addRemotePerson(person)
    const text = Array.from({ length: 1_000 }, (_, index) => `@{p${index}@${victim}}`).join(' ')

    await pod.send(from(person, postBy(person, { text })))

    expect(new Set(asked(victim)).size).toBeLessThanOrEqual(50)
  })

  it('causes one lookup for a hundred messages of an unknown person', async () => {
    const { person, host } = newRemotePerson()

    await Promise.all(Array.from({ length: 100 }, () => pod.post('/receive/public', from(person))))
    await pod.waitUntilIdle()

    expect(asked(host, WEBFINGER)).toHaveLength(1)
    expect(await pod.rows('posts')).toEqual([100])
  })
})

it('S48: URLs registered by a client are not fetched, and a sector identifier is fetched under the outbound rules for pods', async () => {
  const inside = 'https://10.0.0.1/inside'
  const metadata = { jwks_uri: inside, logo_uri: inside, client_uri: inside, policy_uri: inside, tos_uri: inside }

  const plain = await register(pod.app, metadata)
  const sector = await register(pod.app, { subject_type: 'pairwise', sector_identifier_uri: inside })
  const { client_id: id } = plain.json()
  const byReference = await pod.app.inject(
    `/api/openid_connect/authorizations/new?${new URLSearchParams({ client_id: id, response_type: 'code', scope: 'openid', redirect_uri: plain.json().redirect_uris[0], request_uri: 'https://10.0.0.1/request' })}`,
  )

  expect([plain.statusCode, sector.statusCode]).toEqual([201, 400])
  expect(byReference.headers.location).toContain('error=request_uri_not_supported')
  expect(breaches).toEqual([])
})

describe('S49: a way to the pod of an author', () => {
  it.each(['..', '%2e%2e', '%2F%2Fevil.example', 'x%0d%0aset-cookie:a=b', '//evil.example', 'a'.repeat(300)])(
    'is not shown for the guid %s',
    async (guid) => {
      const answer = await pod.app.inject(`/fetch/post/${guid}`)

      expect([answer.statusCode, answer.headers.location]).toEqual([404, undefined])
    },
  )

  it.each(['evil.example/x', 'a@evil.example', 'evil.example\r\nx:y', 'evil.example#'])(
    'is not shown to a pod that is called %j',
    async (host) => {
      const author = await addRemotePerson(pod, `zoe@${newGuid().slice(0, 8)}.example`)
      await pod.db('pods').where({ id: author.podId }).update({ host })
      const { guid } = await addPost(pod, author)

      const answer = await pod.app.inject(`/fetch/post/${guid}`)

      expect([answer.statusCode, answer.headers.location]).toEqual([404, undefined])
    },
  )

  it('leads to the known pod, for any parameters', async () => {
    const author = await addRemotePerson(pod, `zoe@${newGuid().slice(0, 8)}.example`)
    const { guid } = await addPost(pod, author)

    const { headers } = await pod.app.inject({ url: `/fetch/post/${guid}`, headers: { host: 'evil.example' } })

    expect(headers.location).toBe(`https://${author.address.split('@')[1]}/fetch/post/${guid}`)
  })
})
