import { extname } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import type { Config } from '../src/config/config.js'
import { readSoftware } from '../src/config/software.js'
import { startFilterLoader } from '../src/domain/moderation/filters/active-filters.js'
import { registerReceiveMetrics } from '../src/federation/inbound/receive-metrics.js'
import { registerDeliveryMetrics } from '../src/federation/outbound/delivery-metrics.js'
import { startHeartbeat } from '../src/jobs/operations/heartbeat.js'
import { persistCounters } from '../src/jobs/operations/persisted-counters.js'
import { registerWaitingMetrics } from '../src/jobs/waiting/waiting-metrics.js'
import { makeDueBackup } from '../src/operations/backup/scheduled-backups.js'
import { registerBackupMetrics } from '../src/operations/backup-metrics.js'
import { runDueChecks } from '../src/operations/checks/run-checks.js'
import { registerMailMetric } from '../src/operations/mail-metrics.js'
import { openMetrics } from '../src/operations/metrics.js'
import { ADMIN_PORTS, buildOperatorApp } from '../src/operations/operator-server.js'
import { registerStorageMetrics } from '../src/operations/storage-metrics.js'
import { checkForUpdate, registerUpdateMetric } from '../src/operations/update-check.js'
import { checkPicturesAtStart } from '../src/persistence/photos/check-pictures.js'
import { openServices } from '../src/services/open-services.js'
import { type RunningProcess, runProcess } from '../src/services/run-process.js'
import type { Services } from '../src/services/services.js'
import { closeApp } from '../src/web/server/closing/close-app.js'
import type { Readiness } from '../src/web/server/health.js'
import { listenForOperator } from '../src/web/server/listen.js'
import { openFetchHandlers } from './handlers/fetch.js'
import { mailHandlers } from './handlers/mail.js'
import { maintenanceHandlers } from './handlers/maintenance.js'
import { notifyHandlers } from './handlers/notify.js'
import { outboundHandlers, outboundSlowHandlers, relayHandlers } from './handlers/outbound.js'
import { photoHandlers, startUploadSweeper } from './handlers/photos.js'
import { openUnverifiedFetchHandlers } from './handlers/unverified-fetch.js'
import { inProcessDelivery, inProcessHandlers } from './in-process-runs/in-process-handlers.js'
import { registerJobMetrics } from './job-metrics.js'
import { startExports } from './run-exports.js'
import { startImports } from './run-imports.js'
import { runPeriodically } from './run-periodically.js'
import { type RunningWorkers, startWorkers, type WorkersHealth } from './start-workers.js'
import { registerCryptoMetrics, threadLoad } from './threads/crypto-metrics.js'
import { openCryptoPool } from './threads/crypto-pool.js'
import { startWatchdog } from './watchdog.js'

/** One of all workers then runs the check of the day. */
const UPDATE_CHECK_INTERVAL_MS = 3_600_000
/** The checks of six hours are made by one of all workers. */
const SHARED_CHECKS_INTERVAL_MS = 300_000

/**
 * The heap grows by half between two full garbage collections, not to four times its size. Deliveries to hundreds of pods live for some
 * hundred milliseconds: long enough to survive the collections of young objects, and the heap would fill with dead ones.
 */
setFlagsFromString('--heap-growing-percent=50')

await runProcess('worker', startWorker)

/** Opens the parts in the order of their dependencies; returns a function that closes them in reverse order. */
async function startWorker(config: Config, { log, isClosing, fail }: RunningProcess): Promise<() => Promise<void>> {
  const hasPictureQueue = config.workerQueues.includes('photos')
  const unavailable = hasPictureQueue ? await checkPicturesAtStart(config) : undefined
  if (unavailable !== undefined) log.warn({ err: unavailable }, 'S3 store not available, photos wait')
  const crypto = openCryptoPool(config.cryptoThreads)
  const services = await openServices(config, 'worker', { crypto, log })
  for (const warning of await services.jobs.warnings().catch(asWarning)) log.warn(warning)
  const workers = startWorkers(services, {
    handlers: {
      fetch: openFetchHandlers(),
      'fetch-unproven': openUnverifiedFetchHandlers(),
      outbound: outboundHandlers,
      'outbound-slow': outboundSlowHandlers,
      relay: relayHandlers,
      notify: notifyHandlers,
      mail: mailHandlers,
      photos: photoHandlers,
      maintenance: maintenanceHandlers,
    },
    inProcessHandlers,
    inProcessDelivery,
  })
  const uploads = hasPictureQueue ? startUploadSweeper(services) : undefined
  const exports = hasPictureQueue ? startExports(services) : undefined
  const imports = hasPictureQueue ? startImports(services) : undefined
  const updates = config.workerQueues.includes('maintenance')
    ? runPeriodically(UPDATE_CHECK_INTERVAL_MS, () => checkForUpdate(services))
    : undefined
  const checks = config.workerQueues.includes('maintenance')
    ? runPeriodically(SHARED_CHECKS_INTERVAL_MS, () => runDueChecks(services))
    : undefined
  const backups = config.workerQueues.includes('maintenance') ? startBackups(services) : undefined
  const metrics = openMetrics(services)
  registerCryptoMetrics(metrics.registry, crypto)
  registerStorageMetrics(metrics.registry, services.pictures)
  registerBackupMetrics(metrics.registry, services)
  registerUpdateMetric(metrics.registry, services, readSoftware().version)
  registerMailMetric(metrics.registry, services)
  registerReceiveMetrics(metrics.registry)
  registerDeliveryMetrics(metrics.registry)
  registerJobMetrics(metrics.registry)
  registerWaitingMetrics(metrics.registry)
  const counters = persistCounters(services, metrics.registry)
  const heartbeat = startHeartbeat(services, {
    kind: 'worker',
    queues: config.workerQueues,
    runningJobs: workers.runningJobs,
    podClock: () => services.remotePods.readClock?.(),
    threads: () => threadLoad(crypto),
  })
  const filters = startFilterLoader(services)
  const operator = await buildOperatorApp({
    log: services.log,
    metrics,
    readiness: async () => ({
      ...(await readiness(workers, isClosing())),
      ...(config.isolated && { isolated: true }),
    }),
  })
  const admin = await listenForOperator(operator, config.adminListen, ADMIN_PORTS.worker)
  const watchdog = startWatchdog(workers, (health) => fail(new UnresponsiveQueuesError(health)))
  services.log.info({ queues: config.workerQueues, admin }, 'worker started')
  process.send?.({ ready: true, address: null, admin })

  return async () => {
    services.log.info('worker stopping, running jobs finish')
    watchdog.stop()
    await Promise.all([
      uploads?.stop(),
      backups?.stop(),
      exports?.stop(),
      imports?.stop(),
      updates?.stop(),
      checks?.stop(),
      workers.close(),
    ])
    await closeApp(operator, 0)
    await counters.close()
    filters.close()
    await heartbeat.close()
    await services.close()
    await crypto.close()
  }
}

/** Checks each minute whether the daily backup is due. */
function startBackups(services: Services): { stop(): Promise<void> } {
  const program = new URL(`../bin/pod${extname(import.meta.url)}`, import.meta.url)
  return runPeriodically(60_000, (stopping) => makeDueBackup(services, program, stopping))
}

/** An unavailable queue does not stop the process: the workers start when it answers. */
function asWarning(error: Error): readonly string[] {
  return [error.message]
}

async function readiness(workers: RunningWorkers, isClosing: boolean): Promise<Readiness> {
  const { isReady, hasDatabase, lastSweep, unresponsive } = await workers.health()
  return {
    ready: isReady && !isClosing,
    database: hasDatabase ? 'ok' : 'away',
    queues: unresponsive.length === 0 ? 'ok' : `no answer from ${unresponsive.join(', ')}`,
    sweep: lastSweep === null ? 'never' : `${Math.round(lastSweep)} s ago`,
  }
}

/** The stores answer, but the connections of the workers do not: only a new process recovers. */
class UnresponsiveQueuesError extends Error {
  override name = 'UnresponsiveQueuesError'

  constructor({ unresponsive }: WorkersHealth) {
    super(`The queues no longer answer the worker: ${unresponsive.join(', ')}.`)
  }
}
