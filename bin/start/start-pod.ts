import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Config } from '../../src/config/config.js'
import { findHostMismatch } from '../../src/domain/accounts/accounts.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { openLog } from '../../src/logging/log.js'
import { privateAddressesWarning } from '../../src/networks/private-hosts.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrate } from '../../src/persistence/database/migrate.js'
import { checkPicturesAtStart } from '../../src/persistence/photos/check-pictures.js'
import { requireCompleteDatabase, requireOwnDatabase } from '../../src/services/open-services.js'
import { readSecretKey } from '../../src/services/secrets.js'
import { explainDatabaseErrors } from '../explain-database-error.js'
import { processFile } from '../process-file.js'
import { waitForQueue } from '../wait-for-queue.js'
import { adminListenOfWorker } from './admin-listen.js'
import { backUpBeforeMigrations } from './backup-before-migrations.js'
import type { RunningPod } from './screen.js'
import { type StopRequest, untilAborted } from './stop-request.js'
import { type SupervisedDatabase, superviseDatabase } from './supervised-database.js'
import { type RunningProcess, type SupervisedProcess, superviseProcess } from './supervised-process.js'

/** Time for web and worker to finish their work; the rest of 30 s is for the database. */
const DRAIN_LIMIT_MS = 28_500
/** Short, because a person waits: a wrong address must be reported soon. */
const DATABASE_WAIT_MS = 5_000
const URGENT_DRAIN_LIMIT_MS = 2_000

/**
 * Runs the whole pod: database, web and worker as separate processes. Calls `onReady` when all work; returns when all have
 * stopped.
 */
export async function startPod(config: Config, stop: StopRequest, onReady: (pod: RunningPod) => void): Promise<void> {
  const log = openLog(config, 'start')
  await readSecretKey(config) // made before two processes need the key; fails at once if the folder is not writable
  await checkPicturesAtStart(config)
  const parts: SupervisedProcess[] = []
  const renewAll = () => {
    for (const part of parts) part.restart()
  }
  const database = await superviseDatabase(config, log, { onUrlChanged: renewAll })
  stop.urgent.addEventListener('abort', () => void endImmediately(parts, database))
  try {
    await untilAborted(stop.signal, prepareDatabase(config, database, log, stop.signal))
    if (stop.signal.aborted) return
    const web = superviseProcess(
      { name: 'web', file: processFile('src/server'), environment: webEnvironment(config, database) },
      log,
    )
    const worker = superviseProcess(
      { name: 'worker', file: processFile('workers/main'), environment: () => workerEnvironment(config, database) },
      log,
    )
    parts.push(web, worker)
    const reportReady = async () => onReady(await describeRunningPod(config, database, { web, worker }, log))
    const failed = Promise.race([database.failed, web.failed, worker.failed])
    failed.catch(() => undefined)
    await untilAborted(stop.signal, Promise.race([failed, reportReady()]))
    await untilAborted(stop.signal, failed)
  } finally {
    await Promise.all(parts.map((part) => part.stop(DRAIN_LIMIT_MS)))
    await database.stop()
  }
}

/** Waits until both processes are ready. */
async function describeRunningPod(
  config: Config,
  database: SupervisedDatabase,
  parts: { readonly web: SupervisedProcess; readonly worker: SupervisedProcess },
  log: Logger,
): Promise<RunningPod> {
  const [web, worker, ofHost, ofQueue] = await Promise.all([
    parts.web.ready,
    parts.worker.ready,
    queryDatabase(database, (db) => findHostMismatch({ db, config })),
    queueWarnings(config, database, log),
  ])
  const warnings = [ofHost, rootWarning(), privateAddressesWarning(config.allowPrivateAddresses), ...ofQueue].filter(
    (text) => text !== undefined,
  )
  return { config, databaseUrl: database.url(), databasePid: database.pid(), web, worker, warnings }
}

/** Processes that read data of other pods should not run as root. */
function rootWarning(): string | undefined {
  if (process.geteuid?.() !== 0) return undefined
  return 'The pod runs as root. Make a user for it, give that user the data folder, and start the pod as that user.'
}

/** Migrates tables and queue, after a backup of a pod with data; an external database may still be starting. */
async function prepareDatabase(
  config: Config,
  database: SupervisedDatabase,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const url = database.url()
  const until = performance.now() + DATABASE_WAIT_MS
  await queryDatabase(database, (db) =>
    explainDatabaseErrors(url, async () => {
      for (;;) {
        try {
          await requireCompleteDatabase(db)
          if (config.isolated) await requireOwnDatabase(db, log, signal)
          await backUpBeforeMigrations(config, { db, databaseUrl: url, log, signal })
          await migrateQueue(url) // before the tables of the pod: see migrateIfNew
          await migrate(db)
          return
        } catch (error) {
          if (config.databaseUrl === undefined || !isDatabaseUnavailable(error) || performance.now() > until)
            throw error
          await pause(250)
        }
      }
    }),
  )
}

async function queryDatabase<Answer>(
  database: SupervisedDatabase,
  query: (db: Knex) => Promise<Answer>,
): Promise<Answer> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: database.url(), applicationName: 'pod start' })
  try {
    return await query(db)
  } finally {
    await db.destroy()
  }
}

async function queueWarnings(config: Config, database: SupervisedDatabase, log: Logger): Promise<readonly string[]> {
  const { redisUrl, redisReplicas } = config
  const queues = await openJobQueues({ redisUrl, redisReplicas, databaseUrl: database.url(), log })
  try {
    if (await waitForQueue(queues)) return await queues.warnings()
    return [
      'The queue is unavailable: until it is back, messages of other pods are answered with 503. Check REDIS_URL.',
    ]
  } finally {
    await queues.close()
  }
}

function environmentOf(database: SupervisedDatabase): NodeJS.ProcessEnv {
  return { ...process.env, DATABASE_URL: database.url() }
}

/** Keeps the port of a web process with PORT=0 across restarts. */
function webEnvironment(
  config: Config,
  database: SupervisedDatabase,
): (last: RunningProcess | undefined) => NodeJS.ProcessEnv {
  return (last) => {
    const anyPort = 'port' in config.listen && config.listen.port === 0
    const port = anyPort && last?.address ? new URL(last.address).port : undefined
    // The port does not change the identity of the pod.
    return { ...environmentOf(database), ...(port && { PORT: port, POD_URL: config.url }) }
  }
}

function workerEnvironment(config: Config, database: SupervisedDatabase): NodeJS.ProcessEnv {
  const adminListen = adminListenOfWorker(config.adminListen)
  return { ...environmentOf(database), ...(adminListen !== undefined && { ADMIN_LISTEN: adminListen }) }
}

async function endImmediately(parts: readonly SupervisedProcess[], database: SupervisedDatabase): Promise<void> {
  process.exitCode = 1 // the regular shutdown may end in the meantime
  for (const part of parts) part.kill()
  await Promise.race([database.stop().catch(() => undefined), pause(URGENT_DRAIN_LIMIT_MS)])
  process.exit(1)
}
