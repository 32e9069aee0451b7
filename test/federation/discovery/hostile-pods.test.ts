import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { createGzip } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../../src/federation/discovery/fetch-entity.js'
import type { RemoteFault } from '../../../src/federation/remote-pod/remote-pod-error.js'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import type { Services } from '../../../src/services/services.js'
import type { FakePerson, FakePods } from '../../support/federation/fake-pods.js'
import { type ScriptedServer, serveHttp } from '../../support/http/scripted-server.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let fakePods: FakePods
let pod: FederationPod
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  fakePods = pod.fakePods
})
afterAll(() => pod.close())

/** Milliseconds for what would never end. What ends by itself may take as long as it takes on a busy machine. */
const within = 400
const PLENTY = 20_000

type Script = (response: ServerResponse) => void

const scripts: readonly (readonly [what: string, fault: RemoteFault, script: Script])[] = [
  ['says nothing', 'timeout', () => {}],
  ['says nothing after the headers', 'timeout', (response) => response.flushHeaders()],
  ['sends a byte now and then', 'timeout', (response) => every(50, response, ' ')],
  ['sends without end', 'answer_too_large', (response) => pour(response, response)],
  ['sends a bomb', 'answer_too_large', bomb],
  [
    'redirects in a circle',
    'too_many_redirects',
    (response) => void response.writeHead(302, { location: response.req.url }).end(),
  ],
  [
    'redirects to a private address',
    'not_allowed',
    (response) => void response.writeHead(302, { location: 'ftp://10.0.0.1/' }).end(),
  ],
  [
    'redirects to another service of its host',
    'not_allowed',
    (response) => void response.writeHead(302, { location: 'http://127.0.0.1:22/' }).end(),
  ],
  ['breaks off', 'net', (response) => response.destroy()],
  [
    'breaks off in the middle',
    'net',
    (response) => void response.writeHead(200, { 'content-length': '1000' }).write('{', () => response.destroy()),
  ],
  [
    'sends more headers than anybody reads',
    'bad_answer',
    (response) => void response.writeHead(200, { 'x-long': 'x'.repeat(20_000) }).end(),
  ],
]

function every(milliseconds: number, response: ServerResponse, text: string): void {
  const timer = setInterval(() => response.write(text), milliseconds)
  response.on('close', () => clearInterval(timer))
}

/** Writes until the connection is closed. */
function pour(target: NodeJS.WritableStream, response: ServerResponse): void {
  const block = Buffer.alloc(64 * 1024, ' ')
  const more = () => {
    while (!response.destroyed && target.write(block)) {
      // as fast as it goes
    }
  }
  target.on('drain', more)
  response.on('error', () => {})
  more()
}

function bomb(response: ServerResponse): void {
  response.setHeader('content-encoding', 'gzip')
  const gzip = createGzip()
  gzip.on('error', () => {})
  gzip.pipe(response)
  response.on('close', () => gzip.destroy())
  pour(gzip, response)
}

/** An unknown person on a pod of their own. */
function newRemotePerson(): { readonly person: FakePerson; readonly host: string } {
  hosts += 1
  const host = `h${hosts}.example`
  return { person: fakePods.person(`quin@${host}`), host }
}

async function expectFault(work: Promise<unknown>, fault: string, remoteFault: RemoteFault): Promise<void> {
  const error: unknown = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toMatchObject({ fault })
  expect(innermost(error)).toMatchObject({ fault: remoteFault })
}

/** A fetch that fails because of a discovery names that as its cause. */
function innermost(error: unknown): unknown {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof Error && 'fault' in cause ? innermost(cause) : error
}

const everything = ['people', 'profiles', 'pods', 'posts', 'outbox', 'waiting'] as const

describe.each(scripts)('a pod that %s', (_what, fault, script) => {
  const limits = { withinMs: fault === 'timeout' ? within : PLENTY }

  it('makes the WebFinger lookup fail', async () => {
    const { person, host } = newRemotePerson()
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response) => script(response))
    const before = await pod.rows(...everything)

    await expectFault(discoverPerson(pod, person.address, limits), 'DiscoveryFailed', fault)

    expect(await pod.rows(...everything)).toEqual(before)
  })

  it('makes the hCard lookup fail', async () => {
    const { person, host } = newRemotePerson()
    fakePods.script(`${host}/hcard/users/${person.guid}`, (_request, response) => script(response))
    const before = await pod.rows(...everything)

    await expectFault(discoverPerson(pod, person.address, limits), 'DiscoveryFailed', fault)

    expect(await pod.rows(...everything)).toEqual(before)
  })

  it('stores nothing', async () => {
    const { person, host } = newRemotePerson()
    await discoverPerson(pod, person.address)
    const guid = newGuid()
    fakePods.script(`${host}/fetch/post/${guid}`, (_request, response) => script(response))
    const before = await pod.rows(...everything)

    const fetchRequest = { type: 'post', guid, from: person.address, depth: 0 } as const
    await expectFault(fetchEntity(pod, fetchRequest, limits), 'NotFetchable', fault)

    expect(await pod.rows(...everything)).toEqual(before)
  })
})

it('WebFinger and hCard share one deadline', async () => {
  const { person, host } = newRemotePerson()
  for (const [path, text] of [
    ['/.well-known/webfinger', JSON.stringify(fakePods.webFinger(person))],
    [`/hcard/users/${person.guid}`, fakePods.hcard(person)],
  ]) {
    fakePods.script(`${host}${path}`, (_request, response) => void setTimeout(() => response.end(text), 250))
  }

  await expectFault(discoverPerson(pod, person.address, { withinMs: within }), 'DiscoveryFailed', 'timeout')
  expect(await discoverPerson(pod, person.address, { withinMs: 5_000, ignoresRecentFailures: true })).toMatchObject({
    guid: person.guid,
  })
})

/** Every way in which another pod can cause a request of this pod. */
const requestForms: readonly (readonly [
  string,
  (pod: Services, fakePods: FakePods, target: string) => Promise<unknown>,
])[] = [
  ['WebFinger', (pod, _others, target) => discoverPerson(pod, `quin@${target}`)],
  [
    'a redirect of WebFinger',
    (pod, fakePods, target) => {
      const { person, host } = newRemotePerson()
      fakePods.script(`${host}/.well-known/webfinger`, (_request, response) =>
        response.writeHead(302, { location: `http://${target}/` }).end(),
      )
      return discoverPerson(pod, person.address)
    },
  ],
  [
    'an hCard',
    (pod, fakePods, target) => {
      const { person, host } = newRemotePerson()
      const document = fakePods.webFinger(person)
      const links = document.links.map((link) =>
        link.rel.endsWith('/hcard') ? { ...link, href: `http://${target}/card` } : link,
      )
      fakePods.script(`${host}/.well-known/webfinger`, (_request, response) =>
        response.end(JSON.stringify({ ...document, links })),
      )
      return discoverPerson(pod, person.address)
    },
  ],
  [
    'the pod of an author',
    async (pod, fakePods, target) => {
      const { person, host } = newRemotePerson()
      const document = fakePods.webFinger(person)
      const links = document.links.map((link) =>
        link.rel.endsWith('/seed_location') ? { ...link, href: `http://${target}/` } : link,
      )
      fakePods.script(`${host}/.well-known/webfinger`, (_request, response) =>
        response.end(JSON.stringify({ ...document, links })),
      )
      await discoverPerson(pod, person.address)
      return fetchEntity(pod, { type: 'post', guid: newGuid(), from: person.address, depth: 0 })
    },
  ],
  [
    'a pod by its host',
    (pod, _others, target) => fetchEntity(pod, { type: 'post', guid: newGuid(), from: target, depth: 0 }),
  ],
  [
    'a redirect of a fetch',
    async (pod, fakePods, target) => {
      const { person, host } = newRemotePerson()
      const guid = newGuid()
      fakePods.script(`${host}/fetch/post/${guid}`, (_request, response) =>
        response.writeHead(302, { location: `http://${target}/` }).end(),
      )
      return fetchEntity(pod, { type: 'post', guid, from: host === '' ? person.address : host, depth: 0 })
    },
  ],
]

/** The default, except for the server of the other pods of the test. */
describe.each(requestForms)('with nothing or another port opened, %s', (_form, ask) => {
  it.each(['127.0.0.1', 'localhost', '[::1]', '2130706433', '0x7f.1', 'evil.example'])(
    'does not reach a listener on loopback as %s',
    async (host) => {
      const listener = await listenOnLoopback()
      try {
        const names = new Map([['evil.example', ['127.0.0.1']]])
        for (const setting of [undefined, `localhost:${listener.port + 1},127.0.0.1:${listener.port + 1}`]) {
          const remotePods = fakePods.remotePods({
            // What stands for the rest of the world has to be opened, because it is on loopback as well.
            allowPrivate: new Set([...(setting === undefined ? [] : readSetting(setting)), ...allHosts()]),
            resolve: async (name) => names.get(name) ?? ['127.0.0.1'],
            dial: ({ host: name, port }) =>
              connect(isOther(name) ? (port === 443 ? 1 : fakePods.server.port) : Number(port), '127.0.0.1'),
          })
          const error: unknown = await ask({ ...pod, remotePods }, fakePods, `${host}:${listener.port}`).then(
            () => undefined,
            (reason: unknown) => reason,
          )
          expect(innermost(error)).toMatchObject({ fault: 'not_allowed' })
        }
        expect(listener.connections).toBe(0)
      } finally {
        await listener.close()
      }
    },
  )
})

it('the listener is reached when its port is allowed', async () => {
  const listener = await listenOnLoopback()
  const remotePods = fakePods.remotePods({
    allowPrivate: readSetting(`127.0.0.1:${listener.port}`),
    dial: (options) => connect(options),
  })

  await expect(discoverPerson({ ...pod, remotePods }, `quin@127.0.0.1:${listener.port}`)).rejects.toMatchObject({
    fault: 'DiscoveryFailed',
  })

  expect(listener.connections).toBeGreaterThan(0)
  await listener.close()
})

it('a name that changes its address between WebFinger and hCard is checked again', async () => {
  const { person, host } = newRemotePerson()
  const listener = await listenOnLoopback()
  const answers = [['93.184.215.14'], ['127.0.0.1']]
  const dialled: (number | undefined)[] = []
  const remotePods = fakePods.remotePods({
    allowPrivate: 'none',
    resolve: async () => answers.shift() ?? [],
    dial: ({ port }) => {
      dialled.push(port)
      return connect(1, '127.0.0.1')
    },
  })

  await expectFault(discoverPerson({ ...pod, remotePods }, person.address), 'DiscoveryFailed', 'net')
  await expectFault(
    discoverPerson({ ...pod, remotePods }, person.address, { ignoresRecentFailures: true }),
    'DiscoveryFailed',
    'not_allowed',
  )
  expect(dialled).toEqual([443])
  expect(host).not.toBe('')
  await listener.close()
})

function listenOnLoopback(): Promise<ScriptedServer> {
  return serveHttp((_request, response) => response.end('secret'), '::')
}

function readSetting(text: string): ReadonlySet<string> {
  const allowed = readAllowPrivate(text, [])
  if (typeof allowed === 'string') throw new Error('This is a list.')
  return allowed
}

function isOther(name: string | undefined): boolean {
  return /^h[0-9]+\.example$/.test(name ?? '')
}

function allHosts(): string[] {
  return Array.from({ length: hosts + 5 }, (_, index) => `h${index}.example`).flatMap((host) => [
    `${host}:80`,
    `${host}:443`,
  ])
}
