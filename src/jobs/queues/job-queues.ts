import { setTimeout as pause } from 'node:timers/promises'
import type { Job } from 'bullmq'
import type { Logger } from 'pino'
import { StartError } from '../../errors/start-error.js'
import { openOutageLog } from '../../logging/outage-log.js'
import type { ObservedWorker } from '../bullmq/observed-worker.js'
import type { AnyJob } from '../definitions.js'
import { type InProcessRuns, openInProcessRuns } from '../in-process-runs/in-process-runs.js'
import { createJobAdding, type JobAdding } from './add-jobs.js'
import { createQueueControl, type QueueControl } from './control-queues.js'
import { createQueueInspection, type QueueInspection } from './inspect-queues.js'
import { openJobOptions, openJobVersions, type VersionOf } from './job-options.js'
import { openPostgresStore } from './postgres-store.js'
import { openQueueClient, QUEUE_TIMEOUTS, type QueueTimeouts } from './queue-client.js'
import type { QueueName } from './queue-names.js'
import { checkQueueSchema } from './queue-schema.js'
import type { QueueStore, Report } from './queue-store.js'
import { QueueUnavailable } from './queue-unavailable.js'
import { openRedisStore } from './redis-store.js'
import { createJobScheduling, type JobScheduling } from './schedule-jobs.js'
import { type ServeOptions, serveQueue } from './serve-queue.js'
import { throttledLog } from './throttled-log.js'

export interface JobQueues extends JobAdding, QueueInspection, JobScheduling, QueueControl {
  readonly store: 'redis' | 'postgresql'
  /** False: the store is nearly full, so that new messages have to be refused until jobs have ended. */
  hasFreeMemory(): Promise<boolean>
  /** Advice to the operator about the store, in sentences. */
  warnings(): Promise<readonly string[]>
  readonly versionOf: VersionOf
  /** Outbox rows that this process runs without a job. */
  readonly inProcessRuns: InProcessRuns
  serve(queue: QueueName, run: (job: Job) => Promise<void>, options: ServeOptions): ObservedWorker
}

export interface QueueSettings {
  readonly redisUrl: string | undefined
  /** Replicas of Redis that must have an enqueued job; not set: none. */
  readonly redisReplicas?: number
  readonly databaseUrl: string
  readonly log: Logger
  /** Prefix of every key in Redis. */
  readonly prefix?: string
  /** Additional jobs to those in definitions.ts; for tests. */
  readonly definitions?: readonly AnyJob[]
  /** False: BullMQ as it is published, without what src/jobs/bullmq changes for speed; for tests. */
  readonly isTuned?: boolean
  /** Tests set them, so that a busy machine does not count as an outage. */
  readonly timeouts?: QueueTimeouts
}

const FIRST_CONTACT_WITHIN_MS = 1_000

/** Opens the queue on Redis when there is an address for it, else in the database. Neither has to answer: see QueueUnavailable. */
export async function openJobQueues(settings: QueueSettings): Promise<JobQueues & { close(): Promise<void> }> {
  const { log, prefix = 'pod', timeouts = QUEUE_TIMEOUTS } = settings
  const logError = throttledLog(log)
  const outages = openOutageLog({ name: 'queue', log, answers: () => client.answers() })
  const report = (where: string, error: Error) => {
    void outages.suspect(error).then((isOutage) => {
      if (!isOutage) logError(where, error)
    })
  }
  if (settings.redisUrl === undefined) await checkSchema(settings.databaseUrl, logError)
  const store = openStore(settings, report)
  const client = openQueueClient({
    store,
    prefix,
    report,
    timeoutMs: timeouts.requestMs,
    suspectOutage: (error) => void outages.suspect(error),
  })
  await Promise.race([store.firstContact, pause(FIRST_CONTACT_WITHIN_MS, undefined, { ref: false })])

  const optionsOf = openJobOptions(settings.definitions)
  return {
    store: store.kind,
    ...createJobAdding({ client, store, prefix, optionsOf, acknowledgedWithinMs: timeouts.addMs }),
    ...createQueueInspection({ client, store, prefix }),
    ...createQueueControl(client),
    ...createJobScheduling(client, optionsOf),
    versionOf: openJobVersions(settings.definitions),
    inProcessRuns: openInProcessRuns(),
    serve: (name, run, options) => serveQueue({ store, prefix, report }, name, run, options),
    hasFreeMemory: () => client.request('inbound', () => store.hasFreeMemory()),

    async warnings() {
      if (!store.isReady()) throw new QueueUnavailable('The queue is unavailable.')
      return store.warnings()
    },

    async close() {
      outages.close()
      await client.close()
      await store.close()
    },
  }
}

function openStore(
  { redisUrl, redisReplicas = 0, databaseUrl, isTuned = true }: QueueSettings,
  report: Report,
): QueueStore {
  return redisUrl === undefined
    ? openPostgresStore(databaseUrl, { isTuned, report })
    : openRedisStore(redisUrl, { replicas: redisReplicas, isTuned, report })
}

/** Throws only where the tables are missing or newer. A database that is unavailable now is reported by the first request. */
async function checkSchema(databaseUrl: string, report: Report): Promise<void> {
  try {
    await checkQueueSchema(databaseUrl)
  } catch (error) {
    if (error instanceof StartError || !(error instanceof Error)) throw error
    report('start', error)
  }
}
