import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { vi } from 'vitest'
import { readConfig } from '../../../src/config/config.js'
import { isIdle } from '../../../src/jobs/operations/queue-facts.js'
import { openJobQueues } from '../../../src/jobs/queues/job-queues.js'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Pod as OtherPod } from '../../../src/persistence/models/pod.js'
import { openPod } from '../../../src/pod/open-pod.js'
import type { Pod, PodCrypto } from '../../../src/pod/pod.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { Relayable } from '../../../src/protocol/entities/relayables.js'
import { writeEncryptedEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { signRelayable } from '../../../src/protocol/signatures/relayable-signature.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import { buildApp } from '../../../src/web/server/app.js'
import { fetchHandlers } from '../../../workers/handlers/fetch.js'
import { unprovenHandlers } from '../../../workers/handlers/fetch-unproven.js'
import { maintenanceHandlers } from '../../../workers/handlers/maintenance.js'
import { type RunningWorkers, startWorkers, type WorkersOptions } from '../../../workers/start-workers.js'
import { testLog } from '../assertions/test-log.js'
import { createTestDatabase } from '../databases/test-database.js'
import { envelopeOf, type FakePerson, type FakePods } from '../federation/fake-pods.js'
import { peopleOf, type TestPerson } from '../people/local-users.js'
import { countRows } from '../people/remote-people.js'
import { NO_EVENT_LOOP_LIMIT } from './build-pod.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'
import type { PodStores } from './queue-pod.js'

/**
 * A whole pod, `pod.example`: its web process without a port and its workers in this process, on a real database and queue.
 * Its way out leads to the fake pods.
 */
export interface InboundPod extends Pod, AsyncDisposable {
  readonly app: FastifyInstance
  /** Creates the people, once; a second call returns the same people. */
  people<Name extends string>(...names: Name[]): Promise<Record<Name, TestPerson>>
  /** A known person of another pod, so that no key look-up is needed. */
  addRemotePerson(person: FakePerson): Promise<Person>
  /** Posts the entity as the signer would send it to everybody; returns the status of the answer. */
  publicly(entity: Entity, signer: FakePerson): Promise<number>
  /** Posts it as the signer would send it to this user alone. */
  privately(entity: Entity, signer: FakePerson, to: TestPerson): Promise<number>
  /** Posts any body to any path, such as `/receive/public`. */
  post(path: string, body: string): Promise<number>
  /** Resolves when its workers are idle; jobs in other queues stay. */
  settled(timeout?: number): Promise<void>
  readonly workers: RunningWorkers
  rows(...tables: string[]): Promise<readonly number[]>
  close(): Promise<void>
}

export interface InboundPodOptions {
  readonly fakePods: FakePods
  /** Not set: a database of its own, with the queue in it. */
  readonly stores?: PodStores
  readonly environment?: NodeJS.ProcessEnv
  readonly crypto?: PodCrypto
  readonly log?: Logger
  /** Added to the handlers of the inbound and fetch queues. */
  readonly handlers?: WorkersOptions['handlers']
  /** Default: inbound, fetch and sweep. Outbound messages stay in their rows. */
  readonly queues?: WorkersOptions['queues']
  readonly timing?: WorkersOptions['timing']
  /** Hands in a pod with one piece replaced. */
  readonly change?: (pod: Pod) => Pod
}

/** Seconds become milliseconds: nothing a test waits for should take longer than the work itself. */
const quick = { lock: 2_000, stalledCheck: 500, backoff: () => 10 }

export async function startInboundPod(options: InboundPodOptions): Promise<InboundPod> {
  const { fakePods, stores, change = (pod) => pod } = options
  const database = stores === undefined ? await createTestDatabase() : undefined
  const databaseUrl = stores?.databaseUrl ?? database?.url ?? ''
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: databaseUrl,
    DATABASE_POOL: '12',
    SECRET_KEY: 'a key that is only good for tests',
    ...options.environment,
  })
  const log = options.log ?? testLog()
  const opened = await openPod(config, 'worker', { crypto: options.crypto ?? fixedKeyCrypto(), log })
  const jobs = stores === undefined ? undefined : await openJobQueues({ ...stores, log })
  const pod = change({ ...opened, jobs: jobs ?? opened.jobs, remote: fakePods.remotePods() })
  const app = await buildApp(pod, { limits: NO_EVENT_LOOP_LIMIT })
  const queues = options.queues ?? ['inbound', 'inbound-private', 'fetch', 'fetch-unproven', 'maintenance']
  const workers = startWorkers(pod, {
    handlers: {
      fetch: fetchHandlers,
      'fetch-unproven': unprovenHandlers,
      maintenance: maintenanceHandlers,
      ...options.handlers,
    },
    queues,
    timing: { ...quick, ...options.timing },
  })

  async function post(url: string, payload: string): Promise<number> {
    const { statusCode } = await app.inject({ method: 'POST', url, payload })
    return statusCode
  }

  async function close(): Promise<void> {
    await workers.close()
    await app.close()
    await jobs?.close()
    await opened.close()
    await database?.drop()
  }

  return {
    ...pod,
    app,
    workers,
    post,
    people: peopleOf(pod, app),
    addRemotePerson: (stranger) => meet(pod, stranger),
    publicly: (entity, signer) => post('/receive/public', envelopeOf(signer, entity)),
    async privately(entity, signer, { account }) {
      const { publicKey } = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
      return post(`/receive/users/${account.guid}`, encryptEnvelopeFor(publicKey, envelopeOf(signer, entity)))
    },
    settled: (timeout = 15_000) => vi.waitFor(() => expectIdle(pod, queues), { timeout, interval: 20 }),
    rows: (...tables) => countRows(pod, tables),
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function meet({ db }: Pod, { address, guid, publicKey }: FakePerson): Promise<Person> {
  return db.transaction(async (transaction) => {
    const [, host = ''] = address.split('@')
    const { id: podId } = await OtherPod.findOrInsert(transaction, { host, port: 443, ssl: true })
    return Person.insertWithProfile(transaction, { guid, address, publicKey, podId })
  })
}

/** An envelope, encrypted with this public key. */
export function encryptEnvelopeFor(publicKey: string, envelope: string): string {
  const key = readPublicKey(publicKey)
  if (key === undefined) throw new Error('The recipient has no usable key.')
  return writeEncryptedEnvelope(envelope, key)
}

/** The relayable with the mark of its author. */
export function signedBy<Signed extends Relayable>({ privateKey }: FakePerson, relayable: Signed): Signed {
  return { ...relayable, author_signature: signRelayable(relayable, privateKey) }
}

async function expectIdle(pod: Pod, queues: readonly QueueName[]): Promise<void> {
  if (!(await isIdle(pod, queues))) throw new Error('there is still work to do')
}
