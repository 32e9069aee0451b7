import type { Knex } from 'knex'
import { readConfig } from '../../../src/config/config.js'
import type { AnyJob } from '../../../src/jobs/definitions.js'
import { openJobQueues } from '../../../src/jobs/queues/job-queues.js'
import type { QueueTimeouts } from '../../../src/jobs/queues/queue-client.js'
import { openLocales } from '../../../src/languages/locales.js'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'
import { openPictureStorage } from '../../../src/persistence/photos/open-pictures.js'
import { readPrivateKey } from '../../../src/protocol/signatures/rsa.js'
import type { Services } from '../../../src/services/services.js'
import { testLog } from '../assertions/test-log.js'

/** The database and the queue of a process. */
export interface PodStores {
  readonly databaseUrl: string
  readonly redisUrl: string | undefined
  readonly prefix: string
  /** Value of `WORKER_CONCURRENCY`. */
  readonly concurrency?: string
  /** Job definitions of a test with special options. */
  readonly definitions?: readonly AnyJob[]
  /** Timeouts of requests to the queue; by default so long that a busy machine does not count as an outage. */
  readonly timeouts?: QueueTimeouts
}

export const PATIENT_QUEUE_TIMEOUTS: QueueTimeouts = { requestMs: 30_000, addMs: 30_000 }

/** A pod with database and queue only: its keys and its HTTP client reject every call. Works outside of vitest. */
export interface QueuePod extends Services {
  close(): Promise<void>
}

export async function openQueuePod(stores: PodStores): Promise<QueuePod> {
  const log = testLog()
  const db: Knex = openDatabase({ ...WORKER_DATABASE_LIMITS, url: stores.databaseUrl, applicationName: 'pod test' })
  const jobs = await openJobQueues({
    timeouts: PATIENT_QUEUE_TIMEOUTS,
    ...stores,
    log,
    isTuned: process.env['QUEUE_TUNING'] !== 'off',
  })
  let closed: Promise<void> | undefined
  const config = readConfig({
    POD_URL: 'http://pod.example',
    ...(stores.concurrency !== undefined && { WORKER_CONCURRENCY: stores.concurrency }),
  })
  return {
    config,
    pictures: openPictureStorage(config),
    locales: openLocales(config),
    terms: undefined,
    db,
    requestContext: {},
    jobs,
    crypto: {
      generateKeyPair: noKeys,
      verifyEnvelopes: noKeys,
      decryptEnvelopes: noKeys,
      signRelayable: noKeys,
      signMigration: noKeys,
      signEnvelope: noKeys,
      signEnvelopes: noKeys,
      encryptEnvelopes: noKeys,
      readDocument: noKeys,
    },
    remotePods: { get: noRemotePods, post: noRemotePods },
    mailExchanges: async () => [],
    secrets: {
      encrypt: (text) => Buffer.from(text),
      decrypt: String,
      decryptPrivateKey: (sealed) => readPrivateKey(String(sealed)),
      decryptUnbound: String,
      encryptBytes: (bytes) => bytes,
      decryptBytes: (sealed) => sealed,
      mac: (text) => Buffer.from(text),
    },
    log,
    now: () => new Date(),
    close() {
      closed ??= jobs.close().then(() => db.destroy())
      return closed
    },
  }
}

function noKeys(): Promise<never> {
  return Promise.reject(new Error('These tests need no keys.'))
}

function noRemotePods(): Promise<never> {
  return Promise.reject(new Error('These tests send no requests to other pods.'))
}
