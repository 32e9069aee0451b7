import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import { writeHcard, writeWebFinger } from '../../src/protocol/discovery/discovery-documents.js'

/** Loopback addresses of the hosts. They differ, because the pod limits requests by host. */
const ADDRESSES = {
  good: '127.0.0.2',
  uninvolved: '127.0.0.3',
  evil: '127.0.0.4',
  silent: '127.0.0.5',
  silentToo: '127.0.0.6',
} as const

export type RemoteHostName = keyof typeof ADDRESSES

/** The authority (`host:port`) of each host; the first message of this process. */
export type RemoteHostsReady = Readonly<Record<RemoteHostName, string>>

export interface ServedPerson {
  readonly address: string
  readonly guid: string
  readonly publicKey: string
  /** The root URL of the pod that WebFinger names as `seed_location`. */
  readonly podUrl: string
}

/** Adds people to the hosts of their addresses. */
export interface ServePeople {
  readonly serve: readonly ServedPerson[]
}

/** Confirms `ServePeople`. */
export interface PeopleServed {
  readonly served: true
}

/** An entity that a host received in a public envelope. */
export interface Arrival {
  readonly host: RemoteHostName
  readonly guid: string
  /** Milliseconds since 1970. */
  readonly at: number
}

/** Response times of the ordinary hosts. */
const MIN_RESPONSE_MS = 20
const MAX_RESPONSE_MS = 50
/** With its markup just below 1 MiB, the former limit of the pod: a longer document is rejected unread. */
const HOSTILE_HCARD_BYTES = 1024 * 1024 - 200

/** This file runs as a separate process, so that its processor time does not count as the pod's. */
const people = new Map<string, ServedPerson>()
const hostileHcard = `<pre><div class="fn uid nickname given_name family_name searchable key">${'<'.repeat(HOSTILE_HCARD_BYTES)}`

process.on('message', ({ serve }: ServePeople) => {
  for (const person of serve) people.set(person.address, person)
  process.send?.({ served: true } satisfies PeopleServed)
})

const servers: Readonly<Record<RemoteHostName, Server>> = {
  good: createHttpServer((request, response) => respondAsOrdinaryHost('good', request, response)),
  uninvolved: createHttpServer((request, response) => respondAsOrdinaryHost('uninvolved', request, response)),
  evil: createHttpServer(respondAsEvilHost),
  // These hosts accept connections and never respond.
  silent: createTcpServer((socket) => socket.on('error', () => {}).resume()),
  silentToo: createTcpServer((socket) => socket.on('error', () => {}).resume()),
}
const listening = Object.entries(servers).map(async ([name, server]) => {
  const address = ADDRESSES[name as RemoteHostName] // the names are the keys of servers
  server.listen(0, address)
  await new Promise((resolve) => server.once('listening', resolve))
  return [name, `${address}:${(server.address() as AddressInfo).port}`] as const // it listens on a port
})
process.send?.(Object.fromEntries(await Promise.all(listening)))

async function respondAsOrdinaryHost(
  host: RemoteHostName,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await text(request)
  const { pathname, searchParams } = urlOf(request)
  const at = Date.now()
  await pause(MIN_RESPONSE_MS + Math.random() * (MAX_RESPONSE_MS - MIN_RESPONSE_MS))
  if (request.method !== 'POST') return respondToDiscovery(pathname, searchParams, response)
  if (pathname === '/receive/public') {
    const guid = guidIn(body)
    if (guid !== undefined) process.send?.({ host, guid, at } satisfies Arrival)
    response.writeHead(202).end()
    return
  }
  const isKnown = [...people.values()].some(
    ({ guid, podUrl }) => pathname.endsWith(guid) && podUrl.includes(ADDRESSES[host]),
  )
  response.writeHead(isKnown ? 202 : 404).end()
}

async function respondAsEvilHost(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await text(request)
  const { pathname, searchParams, host } = urlOf(request)
  const address = searchParams.get('resource')?.replace(/^acct:/, '')
  if (address !== undefined && !people.has(address)) {
    const links = writeWebFinger({ address, guid: 'hostile', podUrl: `http://${host}/` })
    response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify(links))
  } else if (pathname === '/hcard/users/hostile') {
    response.setHeader('content-type', 'text/html').end(hostileHcard)
  } else respondToDiscovery(pathname, searchParams, response)
}

function respondToDiscovery(pathname: string, searchParams: URLSearchParams, response: ServerResponse): void {
  const address = searchParams.get('resource')?.replace(/^acct:/, '')
  const person = [...people.values()].find(
    (each) => each.address === address || pathname === `/hcard/users/${each.guid}`,
  )
  if (person === undefined) response.writeHead(404).end()
  else if (address !== undefined) {
    response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify(webFingerOf(person)))
  } else response.setHeader('content-type', 'text/html').end(hcardOf(person))
}

/** WebFinger document whose hCard is at the host of the address, with the claimed host as `seed_location`. */
function webFingerOf(person: ServedPerson) {
  const ownUrl = `http://${person.address.split('@')[1]}/`
  const written = writeWebFinger({ ...person, podUrl: ownUrl })
  const links = written.links.map((link) =>
    link.rel.endsWith('/seed_location') ? { ...link, href: person.podUrl } : link,
  )
  return { ...written, links }
}

function hcardOf({ address, guid, publicKey }: ServedPerson): string {
  const [name = '', host] = address.split('@')
  const imageUrl = `http://${host}/image.png`
  return writeHcard({
    guid,
    publicKey,
    nickname: name,
    fullName: name,
    firstName: name,
    lastName: '',
    searchable: true,
    imageUrl,
    imageUrlMedium: imageUrl,
    imageUrlSmall: imageUrl,
  })
}

function urlOf({ url = '/', headers }: IncomingMessage): URL {
  return new URL(url, `http://${headers.host}`)
}

function guidIn(envelope: string): string | undefined {
  const [, data = ''] = /<me:data[^>]*>([^<]*)</.exec(envelope) ?? []
  return /<guid>([^<]+)</.exec(Buffer.from(data, 'base64url').toString())?.[1]
}
