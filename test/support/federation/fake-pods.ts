import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { newGuid } from '../../../src/domain/new-guid.js'
import { openRemotePodClient, type RemotePodClientOptions } from '../../../src/federation/remote-pod/client.js'
import { writeHcard, writeWebFinger } from '../../../src/protocol/discovery/discovery-documents.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { RemotePodClient } from '../../../src/services/remote-pod-client.js'
import { type ScriptedServer, serveHttp } from '../http/scripted-server.js'
import { envelopeOf } from './envelopes.js'

/** A person on another pod, with the private key. */
export interface FakePerson {
  readonly address: string
  readonly guid: string
  readonly publicKey: string
  readonly privateKey: KeyObject
}

type ResponseScript = (request: IncomingMessage, response: ServerResponse, url: URL) => void

/**
 * Other pods, one for each name: one server on loopback, distinguished by the Host header. They give valid responses
 * until a script replaces them.
 */
export interface FakePods extends AsyncDisposable {
  readonly server: ScriptedServer
  /** The requests, in order: host and path with query. */
  readonly requests: readonly string[]
  /** A person published by the pod of this address; by default without a name, with a small key. */
  person(address: string, details?: Partial<FakePerson>): FakePerson
  /** Publishes the entity for fetches by type and guid, signed by the person. */
  serve(signer: FakePerson, entity: Entity & { readonly guid: string }, type?: string): void
  /** Replaces the response for this host and path (without query). */
  script(hostAndPath: string, respond: ResponseScript): void
  /** The default document or page, for scripts that change a part of it. */
  webFinger(person: FakePerson): ReturnType<typeof writeWebFinger>
  hcard(person: FakePerson): string
  /** An HTTP client that connects to this server for every host, over plain HTTP. */
  remotePods(options?: Partial<RemotePodClientOptions>): RemotePodClient & { close(): Promise<void> }
  close(): Promise<void>
}

/** A port without a listener. */
const CLOSED_PORT = 1

export async function startFakePods(): Promise<FakePods> {
  const requests: string[] = []
  const people = new Map<string, FakePerson>()
  const scripts = new Map<string, ResponseScript>()
  const clients: { close(): Promise<void> }[] = []

  const server = await serveHttp((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`)
    requests.push(`${url.host}${url.pathname}${url.search}`)
    const script = scripts.get(`${url.host}${url.pathname}`)
    if (script !== undefined) return script(request, response, url)
    const resource = url.searchParams.get('resource')?.replace(/^acct:/, '')
    const person = [...people.values()].find(({ address, guid }) => address === resource || url.pathname.endsWith(guid))
    if (person !== undefined && url.pathname === '/.well-known/webfinger') {
      return void response.setHeader('content-type', 'application/jrd+json').end(JSON.stringify(webFinger(person)))
    }
    if (person !== undefined && url.pathname === `/hcard/users/${person.guid}`) {
      return void response.setHeader('content-type', 'text/html').end(hcard(person))
    }
    response.statusCode = 404
    response.end()
  })

  function webFinger({ address, guid }: FakePerson) {
    return writeWebFinger({ address, guid, podUrl: podUrlOf(address) })
  }

  function hcard(person: FakePerson): string {
    return writeHcard(cardOf(person))
  }

  async function close(): Promise<void> {
    await Promise.all(clients.map((client) => client.close()))
    await server.close()
  }

  return {
    server,
    requests,
    person(address, details = {}) {
      const person = { address, guid: newGuid(), ...newKeys(), ...details }
      people.set(address, person)
      return person
    },
    serve(signer, entity, type = 'post') {
      const envelope = envelopeOf(signer, entity)
      const path = `${new URL(podUrlOf(signer.address)).host}/fetch/${type}/${encodeURIComponent(entity.guid)}`
      scripts.set(path, (_request, response) => {
        response.setHeader('content-type', 'application/magic-envelope+xml').end(envelope)
      })
    },
    script: (hostAndPath, respond) => void scripts.set(hostAndPath, respond),
    webFinger,
    hcard,
    remotePods(options = {}) {
      const pods = openRemotePodClient({
        allowPrivate: 'all',
        userAgent: 'test/1.0',
        log: { debug() {}, warn() {} },
        resolve: async () => ['127.0.0.1'],
        dial: ({ port }) => connect(port === 443 ? CLOSED_PORT : server.port, '127.0.0.1'),
        ...options,
      })
      clients.push(pods)
      return pods
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The hCard values of a person. */
export function cardOf({ address, guid, publicKey }: FakePerson) {
  const [name = ''] = address.split('@')
  const image = (size: string) => `${podUrlOf(address)}uploads/${name}-${size}.png`
  return {
    guid,
    publicKey,
    nickname: name,
    fullName: `${name} Tester`,
    firstName: name,
    lastName: 'Tester',
    searchable: true,
    imageUrl: image('large'),
    imageUrlMedium: image('medium'),
    imageUrlSmall: image('small'),
  }
}

function podUrlOf(address: string): string {
  return `https://${address.split('@')[1]}/`
}

/** Generates a small key pair, which is fast. */
function newKeys(): Pick<FakePerson, 'publicKey' | 'privateKey'> {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 1024 })
  return { publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(), privateKey }
}
