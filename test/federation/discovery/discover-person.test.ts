import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'
import { Person } from '../../../src/persistence/models/person.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { writeHcard } from '../../../src/protocol/discovery/discovery-documents.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import { cardOf, type FakePods } from '../../support/federation/fake-pods.js'
import { publishedHcards } from '../../support/federation/published-hcards.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const DiscoveryFailed = { fault: 'DiscoveryFailed' }

let fakePods: FakePods
let pod: FederationPod
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  fakePods = pod.fakePods
})
afterAll(() => pod.close())

/** An address that was not looked up yet. */
function newHost(): string {
  hosts += 1
  return `q${hosts}.example`
}

function requestsTo(host: string): readonly string[] {
  return fakePods.requests.filter((request) => request.startsWith(host)).map((request) => request.slice(host.length))
}

const WEBFINGER = '/.well-known/webfinger'

describe('discoverPerson', () => {
  it('requests WebFinger and then the hCard, once each, and stores the person', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)

    const found = await discoverPerson(pod, quin.address)

    expect(requestsTo(host)).toEqual([`${WEBFINGER}?resource=acct:quin@${host}`, `/hcard/users/${quin.guid}`])
    expect(found).toMatchObject({
      guid: quin.guid,
      address: quin.address,
      publicKey: quin.publicKey,
      name: 'quin Tester',
    })
    expect(found.pod).toMatchObject({ host, port: 443, ssl: true, status: 'unchecked' })
    const { profile } = await Person.query(pod.db).findById(found.id).withGraphFetched('profile').throwIfNotFound()
    expect(profile).toMatchObject({
      firstName: 'quin',
      lastName: 'Tester',
      imageUrl: `https://${host}/uploads/quin-large.png`,
      imageUrlMedium: `https://${host}/uploads/quin-medium.png`,
      imageUrlSmall: `https://${host}/uploads/quin-small.png`,
      searchable: true,
    })
    expect(found.avatarUrl).toBe(`https://${host}/uploads/quin-medium.png`)
  })

  it.each([
    ['with acct: and in capitals', (host: string) => ` acct:Quin@${host.toUpperCase()} `],
    ['in capitals', (host: string) => `QUIN@${host}`],
  ])('accepts an address %s', async (_how, write) => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)

    expect(await discoverPerson(pod, write(host))).toMatchObject({ address: quin.address })
  })

  it.each([
    '',
    'quin',
    'quin@',
    '@q.example',
    'quin@q.example/x',
    'quin@q.example:99999',
    'quin@[::g]',
    'a b@q.example',
  ])('sends no request for %j, which is not an address', async (text) => {
    const before = fakePods.requests.length

    await expect(discoverPerson(pod, text)).rejects.toMatchObject(DiscoveryFailed)

    expect(fakePods.requests.length).toBe(before)
  })

  it('stores pods by host and port', async () => {
    const host = `${newHost()}:3000`
    const quin = fakePods.person(`quin@${host}`)

    expect((await discoverPerson(pod, quin.address)).pod).toMatchObject({
      host: host.split(':')[0],
      port: 3000,
      ssl: true,
    })
  })

  it('keeps https once it was seen', async () => {
    const host = newHost()
    const [plain, secure, again] = ['plain', 'secure', 'again'].map((name) => fakePods.person(`${name}@${host}`))
    if (!plain || !secure || !again) throw new Error('There are three of them.')
    for (const [person, scheme] of [
      [plain, 'http'],
      [secure, 'https'],
      [again, 'http'],
    ] as const) {
      const document = fakePods.webFinger(person)
      const links = document.links.map((link) =>
        link.rel.endsWith('/seed_location') ? { ...link, href: `${scheme}://${host}/` } : link,
      )
      fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
        response.end(JSON.stringify({ ...document, links })),
      )
      expect((await discoverPerson(pod, person.address)).pod).toMatchObject({ ssl: person !== plain })
    }
    expect(await RemotePod.query(pod.db).where({ host })).toHaveLength(1)
  })

  it.each(['application/json', 'text/plain', 'text/html', undefined])(
    'reads documents of the media type %s',
    async (type) => {
      const host = newHost()
      const quin = fakePods.person(`quin@${host}`)
      for (const [path, text] of [
        [WEBFINGER, JSON.stringify(fakePods.webFinger(quin))],
        [`/hcard/users/${quin.guid}`, fakePods.hcard(quin)],
      ]) {
        fakePods.script(`${host}${path}`, (_request, response) => {
          if (type !== undefined) response.setHeader('content-type', type)
          response.end(text)
        })
      }

      expect(await discoverPerson(pod, quin.address)).toMatchObject({ guid: quin.guid })
    },
  )

  it('accepts an hCard on another host', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const document = fakePods.webFinger(quin)
    const links = document.links.map((link) =>
      link.rel.endsWith('/hcard') ? { ...link, href: 'https://cards.example/of/quin' } : link,
    )
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(JSON.stringify({ ...document, links })))
    fakePods.script('cards.example/of/quin', (_request, response) => response.end(fakePods.hcard(quin)))

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ guid: quin.guid, pod: { host } })
  })

  it('accepts a seed_location with the host of the pod', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const document = fakePods.webFinger(quin)
    const links = document.links.filter(({ rel }) => rel !== 'http://joindiaspora.com/seed_location')
    expect(links.map(({ rel }) => rel)).toContain(`http://${host}/seed_location`)
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(JSON.stringify({ ...document, links })))

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ pod: { host } })
  })

  it.each([
    [4, 'works'],
    [5, 'fails'],
  ])('over %i redirects %s', async (redirects, end) => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    fakePods.script(`${host}${WEBFINGER}`, (_request, response, url) => {
      const hop = Number(url.searchParams.get('hop') ?? 0)
      if (hop === redirects) return response.end(JSON.stringify(fakePods.webFinger(quin)))
      const location = `${WEBFINGER}?resource=acct:${quin.address}&hop=${hop + 1}`
      return response.writeHead([301, 302, 303, 307, 308][hop] ?? 302, { location }).end()
    })

    const discovery = discoverPerson(pod, quin.address)

    if (end === 'works') expect(await discovery).toMatchObject({ guid: quin.guid })
    else await expect(discovery).rejects.toMatchObject(DiscoveryFailed)
    expect(requestsTo(host).filter((path) => path.startsWith(WEBFINGER))).toHaveLength(5)
  })

  it('resolves picture URLs against the pod, and ignores a default picture', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const card = {
      ...cardOf(quin),
      imageUrl: '/assets/user/default.png',
      imageUrlMedium: '/up/m.png',
      imageUrlSmall: 'up/s.png',
    }
    fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) => response.end(writeHcard(card)))

    const { id } = await discoverPerson(pod, quin.address)

    const { profile } = await Person.query(pod.db).findById(id).withGraphFetched('profile').throwIfNotFound()
    expect(profile).toMatchObject({
      imageUrl: null,
      imageUrlMedium: `https://${host}/up/m.png`,
      imageUrlSmall: `https://${host}/up/s.png`,
    })
  })

  it.each([
    ['a script', 'javascript:alert(1)//x'],
    ['data', 'data:image/png;base64,xyz/'],
    ['an address without end', `https://x.example/${'x'.repeat(2048)}`],
  ])('ignores a picture at %s', async (_what, imageUrl) => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const card = { ...cardOf(quin), imageUrl, imageUrlMedium: imageUrl, imageUrlSmall: imageUrl }
    fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) => response.end(writeHcard(card)))

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ avatarUrl: null })
  })

  it.each(Object.entries(publishedHcards))(
    'finds a person without a name by the hCard of %s',
    async (_software, page) => {
      const host = newHost()
      const quin = fakePods.person(`quin@${host}`)
      const { publicKey, guid, imageUrl: large, imageUrlMedium: medium, imageUrlSmall: small } = cardOf(quin)
      const names = { nickname: 'quin', fullName: '', firstName: '', lastName: '' }
      const card = page({ ...names, guid, publicKey, searchable: 'true', large, medium, small })
      fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) => response.end(card))

      expect(await discoverPerson(pod, quin.address)).toMatchObject({ guid, publicKey, name: '' })
    },
  )

  it('stores the key in a normalised form', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const pkcs1 = readPublicKey(quin.publicKey)?.export({ type: 'pkcs1', format: 'pem' }).toString() ?? ''
    fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) =>
      response.end(writeHcard({ ...cardOf(quin), publicKey: pkcs1 })),
    )

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ publicKey: quin.publicKey })
  })
})

describe('discoverPerson stores nothing', () => {
  async function expectNothingStored(address: string, reason = ''): Promise<void> {
    const before = await pod.rows('people', 'profiles', 'pods')
    await expect(discoverPerson(pod, address)).rejects.toMatchObject({
      ...DiscoveryFailed,
      message: expect.stringContaining(reason),
    })
    expect(await pod.rows('people', 'profiles', 'pods')).toEqual(before)
  }

  it('a discovery whose subject is another person stores nothing', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
      response.end(JSON.stringify({ ...fakePods.webFinger(quin), subject: `acct:remy@${host}` })),
    )

    await expectNothingStored(quin.address)
    expect(requestsTo(host)).toHaveLength(1)
  })

  it.each([404, 410, 500, 503, 401])('a discovery with the answer %i stores nothing', async (status) => {
    const host = newHost()
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.writeHead(status).end())

    await expectNothingStored(`quin@${host}`, `status ${status}`)
  })

  it.each([
    ['a key', { publicKey: '' }],
    ['a usable key', { publicKey: 'a key' }],
    ['a medium picture', { imageUrlMedium: '' }],
    ['a large picture', { imageUrl: '' }],
    ['a small picture', { imageUrlSmall: '' }],
    ['a guid', { guid: '' }],
    ['a guid that is one', { guid: '../../etc/passwd-----' }],
    ['a name that fits', { firstName: 'x'.repeat(33) }],
    ['a name without separators', { lastName: 'a;b' }],
  ])('a discovery with an hCard without %s stores nothing', async (_what, change) => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) =>
      response.end(writeHcard({ ...cardOf(quin), ...change })),
    )

    await expectNothingStored(quin.address)
  })

  it('a discovery whose hCard has no element for the full name stores nothing', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) =>
      response.end(fakePods.hcard(quin).replace('class="fn"', '')),
    )

    await expectNothingStored(quin.address)
  })

  it('a discovery with the guid of a local person stores nothing', async () => {
    const account = await createUser(pod, { username: 'ann', password: 'a long enough password' })
    const host = newHost()
    const thief = fakePods.person(`thief@${host}`)
    fakePods.script(`${host}/hcard/users/${thief.guid}`, (_request, response) =>
      response.end(writeHcard({ ...cardOf(thief), guid: account.guid })),
    )

    await expectNothingStored(thief.address, 'the local person ann@pod.example has the guid')
  })

  it.each([
    'https://pod.example/',
    'http://pod.example/',
    'https://www.pod.example/',
    'https://pod.example:80/',
    'https://POD.example:443/x',
  ])('a discovery with the seed_location %s of this pod stores nothing', async (href) => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const document = fakePods.webFinger(quin)
    const links = document.links.map((link) => (link.rel.endsWith('/seed_location') ? { ...link, href } : link))
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(JSON.stringify({ ...document, links })))

    await expectNothingStored(quin.address)
    expect(requestsTo(host)).toHaveLength(1)
  })

  it.each(['ghost@pod.example', 'ghost@www.pod.example', 'ghost@pod.example:443', 'ghost@pod.example:80'])(
    'and sends no request for %s, which would be a local person',
    async (address) => {
      const before = fakePods.requests.length

      await expectNothingStored(address)

      expect(fakePods.requests.length).toBe(before)
    },
  )

  it('a discovery on a blocked pod stores nothing', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    await setPodRule(pod, COMMAND_ACTOR, { domain: host, state: 'blocked' }, { reason: 'Spam', confirm: host })

    await expectNothingStored(quin.address)
    expect(requestsTo(host)).toEqual([])

    const elsewhere = fakePods.person(`quin@${newHost()}`)
    const document = fakePods.webFinger(elsewhere)
    const links = document.links.map((link) =>
      link.rel.endsWith('/seed_location') ? { ...link, href: `https://${host}/` } : link,
    )
    fakePods.script(`${elsewhere.address.split('@')[1]}${WEBFINGER}`, (_request, response) =>
      response.end(JSON.stringify({ ...document, links })),
    )
    await expectNothingStored(elsewhere.address)
  })
})

describe('a pod at another host than that of the address', () => {
  /** WebFinger of the address names this pod; the pod itself answers with this, or not at all. */
  async function claim(podUrl: string, address: string, confirmation?: (links: { rel: string }[]) => object[]) {
    const quin = fakePods.person(address)
    const document = fakePods.webFinger(quin)
    const links = document.links.map((link) => (link.rel.endsWith('/seed_location') ? { ...link, href: podUrl } : link))
    fakePods.script(`${address.split('@')[1]}${WEBFINGER}`, (_request, response) =>
      response.end(JSON.stringify({ ...document, links })),
    )
    if (confirmation !== undefined) {
      fakePods.script(`${new URL(podUrl).host}${WEBFINGER}`, (_request, response) =>
        response.end(JSON.stringify({ ...document, links: confirmation(links) })),
      )
    }
    return quin
  }

  it('is accepted when the pod confirms the person', async () => {
    const [host, at] = [newHost(), newHost()]
    const quin = await claim(`https://${at}/`, `quin@${host}`, (links) => links)

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ pod: { host: at } })
  })

  it('is accepted when only www. differs', async () => {
    const host = newHost()
    const quin = await claim(`https://www.${host}/`, `quin@${host}`)

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ pod: { host: `www.${host}` } })
  })

  it('is refused when the pod does not know the person', async () => {
    const at = newHost()
    const quin = await claim(`https://${at}/`, `quin@${newHost()}`)
    fakePods.script(`${at}${WEBFINGER}`, (_request, response) => response.writeHead(404).end())

    await expect(discoverPerson(pod, quin.address)).rejects.toMatchObject({ fault: 'DiscoveryFailed' })
    expect(await Person.byAddress(pod.db, quin.address)).toBeUndefined()
  })

  it('is refused when the pod names a third pod', async () => {
    const host = newHost()
    const quin = await claim(`https://${newHost()}/`, `quin@${host}`, (links) =>
      links.map((link) => (link.rel.endsWith('/seed_location') ? { ...link, href: `https://${host}/` } : link)),
    )

    await expect(discoverPerson(pod, quin.address)).rejects.toMatchObject({ fault: 'DiscoveryFailed' })
    expect(await Person.byAddress(pod.db, quin.address)).toBeUndefined()
  })

  it('is refused when only the port differs', async () => {
    const host = newHost()
    const quin = await claim(`https://${host}:8443/`, `quin@${host}`)
    fakePods.script(`${host}:8443${WEBFINGER}`, (_request, response) => response.writeHead(404).end())

    await expect(discoverPerson(pod, quin.address)).rejects.toMatchObject({ fault: 'DiscoveryFailed' })
    expect(await Person.byAddress(pod.db, quin.address)).toBeUndefined()
  })
})

describe('a local person', () => {
  it('is found without a request', async () => {
    await createUser(pod, { username: 'ben', password: 'a long enough password' })
    const before = fakePods.requests.length

    expect(await discoverPerson(pod, 'acct:Ben@pod.example')).toMatchObject({ address: 'ben@pod.example', podId: null })

    expect(fakePods.requests.length).toBe(before)
  })
})

describe('a known person', () => {
  const tomorrow = () => new Date(Date.now() + 25 * 60 * 60 * 1_000)

  async function listKnown() {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    await discoverPerson(pod, quin.address)
    const changed = { ...cardOf(quin), firstName: 'Quintus', fullName: 'Quintus Tester' }
    const serve = (card: object) =>
      fakePods.script(`${host}/hcard/users/${quin.guid}`, (_request, response) =>
        response.end(writeHcard({ ...changed, ...card })),
      )
    return { host, quin, serve }
  }

  it('is looked up again after a day, and not before', async () => {
    const { quin, host, serve } = await listKnown()
    serve({})
    const before = requestsTo(host).length

    expect(await discoverPerson(pod, quin.address)).toMatchObject({ name: 'quin Tester' })
    expect(requestsTo(host).length).toBe(before)

    expect(await discoverPerson(pod.at(tomorrow()), quin.address)).toMatchObject({ name: 'Quintus Tester' })
    expect(requestsTo(host).length).toBe(before + 2)
    await discoverPerson(pod.at(tomorrow()), quin.address)
    expect(requestsTo(host).length).toBe(before + 2)
  })

  it('is looked up at once with the option refresh', async () => {
    const { quin, serve } = await listKnown()
    serve({})

    expect(await discoverPerson(pod, quin.address, { refresh: true })).toMatchObject({ name: 'Quintus Tester' })
  })

  it('keeps key, guid and pod when a later lookup returns others', async () => {
    const { quin, serve, host } = await listKnown()
    const unknownPerson = fakePods.person(`unknown@${newHost()}`)
    serve({ publicKey: unknownPerson.publicKey, guid: newGuid() })
    const document = fakePods.webFinger(quin)
    const links = document.links.map((link) =>
      link.rel.endsWith('/seed_location') ? { ...link, href: 'https://elsewhere.example/' } : link,
    )
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.end(JSON.stringify({ ...document, links })))

    expect(await discoverPerson(pod, quin.address, { refresh: true })).toMatchObject({
      name: 'Quintus Tester',
      publicKey: quin.publicKey,
      guid: quin.guid,
      pod: { host },
    })
    expect(await RemotePod.query(pod.db).where({ host: 'elsewhere.example' })).toEqual([])
  })

  it('keeps a profile that arrived during a lookup', async () => {
    const { quin, serve } = await listKnown()
    serve({})
    const person = await Person.byAddress(pod.db, quin.address).throwIfNotFound()
    const later = new Date(Date.now() + 60_000)
    await pod.db('profiles').where({ personId: person.id }).update({ firstName: 'Newer', acceptedAt: later })

    await discoverPerson(pod, quin.address, { refresh: true })

    expect(await pod.db('profiles').where({ personId: person.id }).first()).toMatchObject({ firstName: 'Newer' })
  })

  it('is returned when the pod is unreachable, but not with the option refresh', async () => {
    const { quin, host } = await listKnown()
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.destroy())

    expect(await discoverPerson(pod.at(tomorrow()), quin.address)).toMatchObject({ name: 'quin Tester' })
    await expect(
      discoverPerson(pod, quin.address, { refresh: true, ignoresRecentFailures: true }),
    ).rejects.toMatchObject(DiscoveryFailed)
  })

  it('is not looked up again when the account is closed', async () => {
    const { quin, host } = await listKnown()
    await Person.query(pod.db).patch({ closedAt: new Date() }).where({ address: quin.address })
    const before = requestsTo(host).length

    expect(await discoverPerson(pod.at(tomorrow()), quin.address, { refresh: true })).toMatchObject({ guid: quin.guid })

    expect(requestsTo(host).length).toBe(before)
  })
})

describe('concurrent lookups of one person', () => {
  it('share one request', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)

    const found = await Promise.all(Array.from({ length: 50 }, () => discoverPerson(pod, quin.address)))

    expect(new Set(found.map(({ id }) => id)).size).toBe(1)
    expect(requestsTo(host)).toHaveLength(2)
  })

  it('share a failure for a minute, except with retries', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    fakePods.script(`${host}${WEBFINGER}`, (_request, response) => response.writeHead(404).end())
    const at = (seconds: number) => pod.at(new Date(Date.now() + seconds * 1_000))

    await expect(discoverPerson(pod, quin.address)).rejects.toMatchObject(DiscoveryFailed)
    await expect(discoverPerson(at(50), quin.address)).rejects.toMatchObject(DiscoveryFailed)
    expect(requestsTo(host)).toHaveLength(1)

    await expect(discoverPerson(pod, quin.address, { ignoresRecentFailures: true })).rejects.toMatchObject(
      DiscoveryFailed,
    )
    expect(requestsTo(host)).toHaveLength(2)

    fakePods.script(`${host}${WEBFINGER}`, (_request, response) =>
      response.end(JSON.stringify(fakePods.webFinger(quin))),
    )
    expect(await discoverPerson(at(70), quin.address)).toMatchObject({ guid: quin.guid })
  })

  it('share no failure that a limit of this process has caused', async () => {
    const quin = fakePods.person(`quin@${newHost()}`)
    const ways = fakePods.remotePods()
    const remotePods = { ...ways, get: () => Promise.reject(new RemotePodError('busy', 'Too much was under way.')) }
    await expect(discoverPerson({ ...pod, remotePods }, quin.address)).rejects.toMatchObject(DiscoveryFailed)

    expect(await discoverPerson({ ...pod, remotePods: Object.assign(remotePods, ways) }, quin.address)).toMatchObject({
      guid: quin.guid,
    })
  })

  it('return the same person in two processes', async () => {
    const host = newHost()
    const quin = fakePods.person(`quin@${host}`)
    const anotherProcess = { ...pod, remotePods: fakePods.remotePods() }

    const found = await Promise.all([discoverPerson(pod, quin.address), discoverPerson(anotherProcess, quin.address)])

    expect(found.map(({ guid }) => guid)).toEqual([quin.guid, quin.guid])
    expect(await Person.query(pod.db).where({ address: quin.address })).toHaveLength(1)
  })
})

describe('messages that wait for a person', () => {
  it('are resumed by the discovery', async () => {
    const quin = fakePods.person(`quin@${newHost()}`)
    await pod.db('waiting').insert({
      waitsFor: `person:${quin.address}`,
      name: 'receive-public',
      payload: 'an envelope',
      acceptedAt: new Date(),
      digest: Buffer.alloc(32, 1),
    })

    await discoverPerson(pod, quin.address)

    expect(await pod.db('waiting')).toEqual([])
    expect(await pod.db('outbox').where({ queue: 'inbound' })).toMatchObject([
      { name: 'receive-public', payload: 'an envelope' },
    ])
  })
})
