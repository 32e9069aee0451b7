import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { freePort } from '../support/http/free-port.js'

const PROGRAM = fileURLToPath(new URL('library_peer.rb', import.meta.url))

/** A person on a pod of the library. */
export interface LibraryPerson {
  readonly address: string
  readonly guid: string
}

/** An entity as the library understood it: its properties, nested entities included. */
export type Properties = Readonly<Record<string, unknown>>

/** An entity that the library verified and accepted. */
interface ReceivedEntity {
  readonly received: string
  readonly data: Properties
  /** Address of the signer of the envelope. */
  readonly sender: string
  /** Address of the recipient of a private message. Null for a public message. */
  readonly recipient: string | null
}

/** A message that the library refused: its error class and message. */
interface RefusedMessage {
  readonly refused: string
  readonly message: string
}

interface SendResult {
  readonly entity: Properties
  /** URLs without a successful response. */
  readonly failed: readonly string[]
}

/** A pod that runs the network's own library: `library_peer.rb` as a process. */
export interface LibraryPeer {
  /** `localhost:4567` */
  readonly host: string
  addPerson(
    username: string,
    names?: { readonly firstName?: string; readonly lastName?: string },
  ): Promise<LibraryPerson>
  /** Runs the discovery of the library. Returns the properties of the person entity. */
  discover(address: string): Promise<Properties>
  sendPublic(type: string, data: Properties, hosts: readonly string[]): Promise<SendResult>
  /** `sender` signs the envelope; the author of the entity by default. */
  sendPrivate(type: string, data: Properties, recipients: readonly string[], sender?: string): Promise<SendResult>
  /** Adds an entity that can be fetched, without sending it. */
  publish(type: string, data: Properties): Promise<Properties>
  /** Fetches a public entity with the library, which then receives it. */
  fetchEntity(author: string, type: string, guid: string): Promise<void>
  /** Waits for an entity of this type that has these properties. */
  receives(type: string, properties: Properties): Promise<ReceivedEntity>
  readonly received: readonly ReceivedEntity[]
  readonly refused: readonly RefusedMessage[]
  stop(): Promise<void>
}

interface Reply {
  readonly id: number
  readonly result?: unknown
  readonly error?: string
}

type Line = Reply | ReceivedEntity | RefusedMessage | { readonly ready: true }

export async function startLibraryPeer(): Promise<LibraryPeer> {
  const port = await freePort()
  const host = `localhost:${port}`
  const child = spawn('bundle', ['exec', 'ruby', PROGRAM, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const received: ReceivedEntity[] = []
  const refused: RefusedMessage[] = []
  const pending = new Map<number, (reply: Reply) => void>()
  let lastId = 0

  const ready = new Promise<void>((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (text) => {
      const line = JSON.parse(text) as Line // library_peer.rb writes nothing else
      if ('ready' in line) resolve()
      else if ('received' in line) received.push(line)
      else if ('refused' in line) refused.push(line)
      else pending.get(line.id)?.(line)
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`The library peer exited with code ${code}.`)))
  })
  await ready

  async function call(command: string, parameters: object): Promise<unknown> {
    lastId += 1
    const id = lastId
    const reply = new Promise<Reply>((resolve) => pending.set(id, resolve))
    child.stdin.write(`${JSON.stringify({ id, command, with: parameters })}\n`)
    const { result, error } = await reply
    pending.delete(id)
    if (error !== undefined) throw new Error(`${command}: ${error}`)
    return result
  }

  return {
    host,
    received,
    refused,
    addPerson: (username, { firstName = '', lastName = '' } = {}) =>
      call('person', { username, first_name: firstName, last_name: lastName }) as Promise<LibraryPerson>,
    discover: (address) => call('discover', { address }) as Promise<Properties>,
    sendPublic: (type, data, hosts) => call('send_public', { type, data, hosts }) as Promise<SendResult>,
    sendPrivate: (type, data, recipients, sender) =>
      call('send_private', {
        type,
        data,
        recipients,
        ...(sender === undefined ? {} : { sender }),
      }) as Promise<SendResult>,
    publish: async (type, data) => ((await call('keep', { type, data })) as SendResult).entity,
    fetchEntity: async (author, type, guid) => void (await call('fetch', { author, type, guid })),
    receives: (type, properties) =>
      vi.waitFor(
        () => {
          const found = received.find((entity) => entity.received === type && hasProperties(entity.data, properties))
          if (found !== undefined) return found
          throw new Error(`No ${type} with ${JSON.stringify(properties)}: ${JSON.stringify({ received, refused })}`)
        },
        { timeout: 20_000, interval: 25 },
      ),
    stop: () => endProcess(child),
  }
}

function hasProperties(data: Properties, expected: Properties): boolean {
  return Object.entries(expected).every(([name, value]) => JSON.stringify(data[name]) === JSON.stringify(value))
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}
