import type { FastifyInstance } from 'fastify'
import { Person } from '../../../src/persistence/models/person.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { Services } from '../../../src/services/services.js'
import { openFetchHandlers } from '../../../workers/handlers/fetch.js'
import { maintenanceHandlers } from '../../../workers/handlers/maintenance.js'
import { openUnverifiedFetchHandlers } from '../../../workers/handlers/unverified-fetch.js'
import type { RunningWorkers, WorkersOptions } from '../../../workers/start-workers.js'
import { countRows } from '../databases/rows.js'
import { encryptEnvelopeFor, envelopeOf } from '../federation/envelopes.js'
import type { FakePerson, FakePods } from '../federation/fake-pods.js'
import type { TestPerson } from '../people/local-users.js'
import { addRemotePerson } from '../people/remote-people.js'
import { startTestWorkers, untilIdle } from '../queues/test-workers.js'
import { buildPod, type PodOptions } from './build-pod.js'

/** The web application and the inbound workers of `pod.example` in the process of the test, between fake pods. */
export interface InboundPod extends Services, AsyncDisposable {
  readonly app: FastifyInstance
  /** Creates the people, once; a second call returns the same people. */
  people<Name extends string>(...names: Name[]): Promise<Record<Name, TestPerson>>
  /** Stores a person of a fake pod, so that no key lookup is needed. */
  addRemotePerson(person: FakePerson): Promise<Person>
  /** Posts the entity in a public envelope of the signer, and returns the status of the response. */
  postPublic(entity: Entity, signer: FakePerson): Promise<number>
  /** Posts the entity in an encrypted envelope for this user. */
  postPrivate(entity: Entity, signer: FakePerson, to: TestPerson): Promise<number>
  /** Posts any body to any path, such as `/receive/public`. */
  post(path: string, body: string): Promise<number>
  /** Resolves when its workers are idle; jobs in other queues stay. */
  waitUntilIdle(timeout?: number): Promise<void>
  readonly workers: RunningWorkers
  rows(...tables: string[]): Promise<readonly number[]>
  close(): Promise<void>
}

export interface InboundPodOptions extends Omit<PodOptions, 'queue' | 'process' | 'web'> {
  readonly fakePods: FakePods
  /** Added to the handlers of the inbound and fetch queues. */
  readonly handlers?: WorkersOptions['handlers']
  /** Default: inbound, fetch and maintenance. Outbound messages stay in their rows. */
  readonly queues?: NonNullable<WorkersOptions['queues']>
  readonly timing?: WorkersOptions['timing']
}

const QUEUES = ['inbound', 'inbound-private', 'fetch', 'fetch-unproven', 'maintenance'] as const

export async function startInboundPod(options: InboundPodOptions): Promise<InboundPod> {
  const { environment, handlers, queues = QUEUES, timing, ...podOptions } = options
  const {
    pod,
    app,
    people,
    close: closePod,
  } = await buildPod({
    ...podOptions,
    process: 'worker',
    environment: { DATABASE_POOL: '12', ...environment },
  })
  const workers = startTestWorkers(pod, {
    handlers: {
      fetch: openFetchHandlers(),
      'fetch-unproven': openUnverifiedFetchHandlers(),
      maintenance: maintenanceHandlers,
      ...handlers,
    },
    queues,
    ...(timing && { timing }),
  })

  async function post(url: string, payload: string): Promise<number> {
    const { statusCode } = await app.inject({ method: 'POST', url, payload })
    return statusCode
  }

  async function close(): Promise<void> {
    await workers.close()
    await closePod()
  }

  return {
    ...pod,
    app,
    workers,
    post,
    people,
    addRemotePerson: ({ address, guid, publicKey }) => addRemotePerson(pod, address, { guid, publicKey }),
    postPublic: (entity, signer) => post('/receive/public', envelopeOf(signer, entity)),
    async postPrivate(entity, signer, { account }) {
      const { publicKey } = await Person.query(pod.db).findOne({ guid: account.guid }).throwIfNotFound()
      return post(`/receive/users/${account.guid}`, encryptEnvelopeFor(publicKey, envelopeOf(signer, entity)))
    },
    waitUntilIdle: (timeout) => untilIdle(pod, timeout, queues),
    rows: (...tables) => countRows(pod, tables),
    close,
    [Symbol.asyncDispose]: close,
  }
}
