import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { SCOPES } from '../../src/domain/accounts/scopes.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../src/protocol/entities/registry.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { signRelayable } from '../../src/protocol/signatures/relayable-signature.js'
import { openServices } from '../../src/services/open-services.js'
import type { KeyPair } from '../../src/services/pod-crypto.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { environmentOf, type PodProcess, startProcess } from '../inbound/inbound-pod.js'
import { openBenchStores, type QueueStoreName } from '../machine/bench-stores.js'
import { endProcess, forkFile, nextMessage } from '../machine/child-process.js'
import type {
  Arrival,
  PeopleServed,
  RemoteHostName,
  RemoteHostsReady,
  ServedPerson,
  ServePeople,
} from './remote-hosts.js'

const TOKEN_LIFETIME_SECONDS = 3_600
const WARM_UP_WITHIN_MS = 30_000
const POLL_MS = 20

/** A person of another pod whose key the bench has. */
export interface RemotePerson extends ServedPerson {
  readonly privateKey: KeyObject
}

export interface LocalUser {
  readonly userId: number
  readonly personId: number
  readonly token: string
}

/** A complete pod and simulated remote hosts. The pod knows gina, a contact of alice, and hank, a contact of bob. */
export interface HostilePod {
  readonly queue: QueueStoreName
  readonly port: number
  /** Database connection without a statement timeout. */
  readonly db: Knex
  readonly alice: LocalUser
  readonly bob: LocalUser
  readonly gina: RemotePerson
  readonly hosts: RemoteHostsReady
  readonly hostsProcess: ChildProcess
  /** Creates people with new keys and serves their discovery documents. `claimedHost` is the host in the `seed_location` of WebFinger. */
  addPeople(
    names: readonly string[],
    at: RemoteHostName,
    claimedHost?: RemoteHostName,
  ): Promise<readonly RemotePerson[]>
  /** Publishes a post of alice to which gina's pod subscribes. Returns its guid when gina's pod has received it. */
  publishParent(): Promise<string>
  /** Sends a signed post of the person, so that the pod knows the person. */
  register(person: RemotePerson): Promise<void>
  close(): Promise<void>
}

/** Undefined: Redis is not installed. */
export async function startHostilePod(queue: QueueStoreName): Promise<HostilePod | undefined> {
  const stores = await openBenchStores(queue)
  if (stores === undefined) return undefined
  const environment = environmentOf(stores)
  const hostsProcess = forkFile('hostile/remote-hosts')
  const processes: PodProcess[] = []
  const db = openDatabase({
    ...WORKER_DATABASE_LIMITS,
    url: stores.databaseUrl,
    applicationName: 'bench',
    statementTimeoutMs: 0,
    queryTimeoutMs: 0,
  })

  async function close(): Promise<void> {
    for (const { child } of processes) await endProcess(child)
    hostsProcess.kill()
    await db.destroy()
    await stores?.close()
  }

  try {
    const hosts = await nextMessage<RemoteHostsReady>(hostsProcess)
    const [alice, bob] = await addUsers(environment, ['alice', 'bob'])
    if (alice === undefined || bob === undefined) throw new Error('Fewer than two users were created.')
    processes.push(await startProcess('../src/server', environment), await startProcess('../workers/main', environment))
    const port = processes.find(({ name }) => name === 'web')?.port ?? 0

    async function addPeople(names: readonly string[], at: RemoteHostName, claimedHost = at) {
      const people = names.map((name) => createPerson(`${name}@${hosts[at]}`, `http://${hosts[claimedHost]}/`))
      const serve = people.map(({ privateKey: _, ...served }) => served)
      hostsProcess.send({ serve } satisfies ServePeople)
      let message: PeopleServed | Arrival
      do message = await nextMessage<PeopleServed | Arrival>(hostsProcess)
      while (!('served' in message))
      return people
    }

    async function register(person: RemotePerson): Promise<void> {
      const post = postOf(person)
      await sendMessage(port, post.envelope)
      const deadline = performance.now() + WARM_UP_WITHIN_MS
      while ((await db('posts').where({ guid: post.guid }).first('id')) === undefined) {
        if (performance.now() > deadline) throw new Error(`The post of ${person.address} was not stored.`)
        await pause(POLL_MS)
      }
    }

    async function publishParent(user: LocalUser, subscriber: RemotePerson): Promise<string> {
      const body = JSON.stringify({ public: true, body: 'Good morning' })
      const headers = { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' }
      const response = await fetch(`http://127.0.0.1:${port}/api/v1/posts`, { method: 'POST', headers, body })
      const { guid } = (await response.json()) as { readonly guid: string } // as the API documents it
      let message: Arrival | object
      do message = await nextMessage<Arrival | object>(hostsProcess)
      while (!('guid' in message) || message.guid !== guid)
      await db.raw(
        `insert into participations (guid, post_id, author_id)
         select ?, posts.id, people.id from posts, people where posts.guid = ? and people.address = ?`,
        [newGuid(), guid, subscriber.address],
      )
      return guid
    }

    const [gina] = await addPeople(['gina'], 'good')
    const [hank] = await addPeople(['hank'], 'uninvolved')
    if (gina === undefined || hank === undefined) throw new Error('Fewer than two people were created.')
    await register(gina)
    await register(hank)
    await addContact(db, alice, gina)
    await addContact(db, bob, hank)
    return {
      queue,
      port,
      db,
      alice,
      bob,
      gina,
      hosts,
      hostsProcess,
      addPeople,
      publishParent: () => publishParent(alice, gina),
      register,
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** Key pairs by username. All pods of a run share them, because key generation takes seconds. */
const keysByUsername = new Map<string, KeyPair>()

async function addUsers(environment: NodeJS.ProcessEnv, names: readonly string[]): Promise<readonly LocalUser[]> {
  const crypto = openCryptoPool(1)
  const services = await openServices(readConfig(environment), 'command', { crypto, log: pino({ level: 'silent' }) })
  const users: LocalUser[] = []
  try {
    for (const username of names) {
      const keys = keysByUsername.get(username) ?? (await crypto.generateKeyPair())
      keysByUsername.set(username, keys)
      const withKeys = { ...services, crypto: { ...crypto, generateKeyPair: async () => keys } }
      await createUser(withKeys, { username, password: `the password of ${username}` })
      const { id: userId, personId } = await services.db('users').where({ username }).first('id', 'personId')
      const { accessToken: token } = await mintToken(services, username, {
        scopes: SCOPES,
        lifetime: TOKEN_LIFETIME_SECONDS,
      })
      users.push({ userId, personId, token })
    }
    return users
  } finally {
    await services.close()
    await crypto.close()
  }
}

async function addContact(db: Knex, user: LocalUser, { address }: RemotePerson): Promise<void> {
  await db.raw(
    `insert into contacts (user_id, person_id, sharing, receiving) select ?, id, true, true from people where address = ?`,
    [user.userId, address],
  )
}

function createPerson(address: string, podUrl: string): RemotePerson {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return {
    address,
    guid: newGuid(),
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    podUrl,
    privateKey,
  }
}

/** A signed message and the guid of its entity. */
export interface SignedMessage {
  readonly guid: string
  readonly envelope: string
}

const SENTENCE = 'The quick brown fox — «schnell» — jumps over the lazy dog & 狐 too. '

export function postOf(author: RemotePerson): SignedMessage {
  const guid = newGuid()
  const entity: Entity = {
    type: 'status_message',
    author: author.address,
    guid,
    created_at: new Date(),
    public: true,
    text: SENTENCE.repeat(4),
    photos: [],
  }
  return { guid, envelope: envelopeOf(author, entity) }
}

export function commentOf(author: RemotePerson, parentGuid: string): SignedMessage {
  const guid = newGuid()
  const comment: Relayable = {
    type: 'comment',
    author: author.address,
    guid,
    parent_guid: parentGuid,
    text: SENTENCE.repeat(2),
    created_at: new Date(),
  }
  const signed = { ...comment, author_signature: signRelayable(comment, author.privateKey) }
  return { guid, envelope: envelopeOf(author, signed) }
}

export function envelopeOf({ address, privateKey }: RemotePerson, entity: Entity): string {
  return signMagicEnvelope(writeEntity(entity), address, privateKey)
}

export function newGuid(): string {
  return randomBytes(16).toString('hex')
}

/** Sends a public message as an ordinary pod does. Returns the status of the response. */
export async function sendMessage(port: number, body: string): Promise<number> {
  const headers = { 'content-type': 'application/magic-envelope+xml', 'x-forwarded-for': '198.51.100.7' }
  const response = await fetch(`http://127.0.0.1:${port}/receive/public`, { method: 'POST', headers, body })
  await response.arrayBuffer()
  return response.status
}
