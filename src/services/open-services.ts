import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import { findRunningEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import type { Config } from '../config/config.js'
import { readSoftware } from '../config/software.js'
import { bindPrivateKeys, decryptStoredPrivateKey } from '../domain/accounts/private-keys.js'
import { StartError } from '../errors/start-error.js'
import { messageOf } from '../errors/thrown.js'
import { openRemotePodClient } from '../federation/remote-pod/client.js'
import { openIsolatedRemotePodClient } from '../federation/remote-pod/isolated-client.js'
import { openJobQueues, type QueueSettings } from '../jobs/queues/job-queues.js'
import { type Locales, openLocales } from '../languages/locales.js'
import { openLog } from '../logging/log.js'
import { openOutageLog } from '../logging/outage-log.js'
import { isDatabaseReachable, onConnectionError, openDatabase } from '../persistence/database/database.js'
import {
  isDatabaseAccessDenied,
  isDatabaseUnavailable,
  messageWithoutStatement,
} from '../persistence/database/errors.js'
import { REPLICA_LIMITS, WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS } from '../persistence/database/limits.js'
import { migrationStatus } from '../persistence/database/migrate.js'
import { openReadReplica, type ReadReplica } from '../persistence/database/read-replica.js'
import { watchSlowStatements } from '../persistence/database/slow-statements.js'
import { UserSecrets } from '../persistence/models/user.js'
import { findHeartbeatOfOriginal } from '../persistence/operations/processes.js'
import { findUnfinishedRestore, isDatabaseMoving, MOVE_SOURCE } from '../persistence/operations/restore-target.js'
import { findTakeOver } from '../persistence/operations/take-over-state.js'
import { type CountedPictures, countFailures } from '../persistence/photos/counted-pictures.js'
import { openPictureStorage } from '../persistence/photos/open-pictures.js'
import { checkFormerQueue } from './former-queue.js'
import { openMailExchanges } from './mail-exchanges.js'
import type { PodCrypto } from './pod-crypto.js'
import { createSecrets, readSecretKey } from './secrets.js'
import type { Secrets, Services } from './services.js'
import { readTerms } from './terms.js'

export interface OpenServices extends Services {
  readonly pictures: CountedPictures
  close(): Promise<void>
}

/** The kind of process decides its waiting time for the database and its number of connections. */
export type ProcessKind = 'web' | 'worker' | 'command'

interface ServiceDependencies {
  readonly crypto: PodCrypto
  readonly log?: Logger
  readonly now?: () => Date
}

/** Milliseconds to wait for the database. Services may start before it; a person waits for a command. */
const DATABASE_WAIT_MS: Readonly<Record<ProcessKind, number>> = { web: 60_000, worker: 60_000, command: 3_000 }
const COMMAND_POOL = 4
/** A busy database responds more slowly; this is not an outage. */
const ANSWERED_WITHIN_MS = 3_000

/** Opens all services of a process. Throws a StartError that names the missing one; the opened ones are closed. */
export async function openServices(
  config: Config,
  kind: ProcessKind,
  dependencies: ServiceDependencies,
): Promise<OpenServices> {
  const closers = openClosers()
  try {
    return await openParts(config, kind, dependencies, closers)
  } catch (error) {
    await closers.closeAll().catch(() => undefined) // the first error has the reason
    throw error
  }
}

async function openParts(
  config: Config,
  kind: ProcessKind,
  dependencies: ServiceDependencies,
  closers: Closers,
): Promise<OpenServices> {
  const log = dependencies.log ?? openLog(config, kind)
  const databaseUrl = await databaseUrlOf(config)
  const locales = openOperatorLocales(config)
  const terms = kind === 'web' ? await readTerms(config) : undefined
  const secrets = createSecrets(await readSecretKey(config))
  const tracer = await openTracing(config, kind, log)
  closers.add(async () => tracer?.close())
  const db = openDatabase({ url: databaseUrl, applicationName: `pod ${kind}`, ...limitsOf(config, kind) })
  closers.add(() => db.destroy())
  if (kind !== 'command') watchSlowStatements(db)
  const outages = openOutageLog({ name: 'database', log, answers: () => isDatabaseReachable(db, ANSWERED_WITHIN_MS) })
  closers.add(async () => outages.close())
  let isOpen = false
  onConnectionError(db, (error) => {
    if (isOpen) void outages.suspect(error)
  })
  await waitUntilReachable({ db, databaseUrl, log }, DATABASE_WAIT_MS[kind], async () => {
    await checkMigrations(db)
    if (kind !== 'command') await checkTakeOver(db)
    if (kind !== 'command' && config.isolated) await requireOwnDatabase(db, log)
    await checkSecretKey(db, secrets, config)
    if (kind !== 'command') await bindKeysOfEarlierVersions(db, secrets, log)
  })
  isOpen = true
  const queue = queueSettings(config, databaseUrl)
  if (kind !== 'command' && !config.isolated) await checkFormerQueue({ db, secrets, log }, queue)
  const jobs = await openJobQueues({ ...queue, log })
  closers.add(() => jobs.close())
  const replica = openReplica(config, databaseUrl, kind, log)
  closers.add(async () => replica?.close())
  const { name, version } = readSoftware()
  const remotePods = config.isolated
    ? openIsolatedRemotePodClient()
    : openRemotePodClient({ allowPrivate: config.allowPrivateAddresses, userAgent: `${name}/${version}`, log })
  closers.add(() => remotePods.close())
  return {
    config,
    db,
    requestContext: {},
    ...(replica && { replica }),
    ...(tracer && { tracer }),
    jobs,
    crypto: dependencies.crypto,
    remotePods,
    secrets,
    mailExchanges: config.isolated ? async () => [] : openMailExchanges(),
    pictures: countFailures(openPictureStorage(config)),
    locales,
    terms,
    log,
    now: dependencies.now ?? (() => new Date()),
    async close() {
      isOpen = false
      await closers.closeAll()
    },
  }
}

interface Closers {
  add(close: () => Promise<void>): void
  /** Closes the part that was added last first, because each part may use earlier ones. A failure does not keep the others open. */
  closeAll(): Promise<void>
}

function openClosers(): Closers {
  const closers: (() => Promise<void>)[] = []
  return {
    add: (close) => closers.push(close),
    async closeAll() {
      const failures: unknown[] = []
      for (let close = closers.pop(); close !== undefined; close = closers.pop()) {
        await close().catch((error: unknown) => failures.push(error))
      }
      if (failures.length > 0) throw failures[0]
    },
  }
}

/** Web and worker processes do this when they start; a command changes no key. */
async function bindKeysOfEarlierVersions(db: Knex, secrets: Secrets, log: Logger): Promise<void> {
  const keys = await bindPrivateKeys({ db, secrets })
  if (keys > 0) log.warn({ keys }, 'private keys bound to their users')
}

/** The catalogues of the operator are checked at the start. */
function openOperatorLocales(config: Config): Locales {
  try {
    const locales = openLocales(config)
    if (!locales.languages.includes(config.defaultLanguage)) {
      throw new StartError(`DEFAULT_LANGUAGE must be one of ${locales.languages.join(', ')}.`)
    }
    return locales
  } catch (error) {
    if (error instanceof StartError) throw error
    throw new StartError(`LOCALES_DIR cannot be used. ${messageOf(error)}`)
  }
}

/** Opens the tracer. Its modules are loaded only if tracing is on. An isolated copy would send the spans of its original again. */
async function openTracing(
  { tracing, isolated }: Pick<Config, 'tracing' | 'isolated'>,
  kind: ProcessKind,
  log: Logger,
) {
  if (tracing === undefined || isolated || kind === 'command') return undefined
  const { openTracer } = await import('../operations/tracing/open-tracer.js')
  return openTracer(tracing, kind, log)
}

/**
 * Opens the read replica. Only lists for clients are read there; all other reads need current data. The replica of an isolated copy
 * would be that of its original.
 */
function openReplica(config: Config, primaryUrl: string, kind: ProcessKind, log: Logger): ReadReplica | undefined {
  const { databaseReadUrl: replicaUrl, databasePool: pool = WEB_DATABASE_LIMITS.pool, isolated } = config
  if (replicaUrl === undefined || isolated || kind !== 'web') return undefined
  return openReadReplica({
    primaryUrl,
    replicaUrl,
    applicationName: `pod ${kind}`,
    limits: { ...REPLICA_LIMITS, pool },
    report: (sentence, err) => (err === undefined ? log.info(sentence) : log.warn({ err }, sentence)),
  })
}

/** The database of the settings, or the running embedded one of this data folder. */
async function databaseUrlOf(config: Pick<Config, 'databaseUrl' | 'dataDir'>): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl
  const running = await findRunningEmbeddedPostgres(config.dataDir)
  if (running !== undefined) return running.url
  throw new StartError(
    `There is no database: DATABASE_URL is not set and no embedded one is running in ${config.dataDir}. Use "npm start", or set DATABASE_URL.`,
  )
}

export function queueSettings(config: Config, databaseUrl: string): Omit<QueueSettings, 'log'> {
  const { redisUrl, redisReplicas } = config
  return { redisUrl, redisReplicas, databaseUrl, prefix: queuePrefix(config) }
}

/**
 * Two pods may share a Redis; the queue's own keys have colons, so that of a pod has none. An isolated copy has the host of its original,
 * and would take accepted messages from it.
 */
export function queuePrefix({ host, isolated }: Pick<Config, 'host' | 'isolated'>): string {
  return `pod-${host.replaceAll(/[^a-z0-9.]/g, '-')}${isolated ? '-isolated' : ''}`
}

function limitsOf(config: Config, kind: ProcessKind) {
  const limits = kind === 'web' ? WEB_DATABASE_LIMITS : WORKER_DATABASE_LIMITS
  return { ...limits, pool: kind === 'command' ? COMMAND_POOL : (config.databasePool ?? limits.pool) }
}

/** Waits for an unreachable database, but not for one that refuses the login or lacks migrations. */
async function waitUntilReachable(
  { db, databaseUrl, log }: { readonly db: Knex; readonly databaseUrl: string; readonly log: Logger },
  waitMs: number,
  check: () => Promise<void>,
): Promise<void> {
  const until = Date.now() + waitMs
  let isLogged = false
  for (;;) {
    const databaseError = await findDatabaseError(db, check)
    if (databaseError === undefined) return
    const sentence = describeUnreachable(databaseError, databaseUrl)
    if (isDatabaseAccessDenied(databaseError) || Date.now() > until) throw new StartError(sentence)
    if (!isLogged) log.warn(`${sentence} Waiting for it ...`)
    isLogged = true
    await pause(250)
  }
}

/** The error of an unavailable database, which may also fail between two statements. Other errors are thrown. */
async function findDatabaseError(db: Knex, check: () => Promise<void>): Promise<unknown> {
  if (!(await isDatabaseReachable(db))) return readConnectionError(db)
  try {
    await check()
    return undefined
  } catch (error) {
    if (isDatabaseUnavailable(error)) return error
    throw error
  }
}

async function readConnectionError(db: Knex): Promise<unknown> {
  return db.raw('select 1').then(
    () => new Error('it answers too slowly'),
    (error: unknown) => error,
  )
}

/** The error text, with the reason of database or network and without the password. */
function describeUnreachable(error: unknown, databaseUrl: string): string {
  const { host, pathname, username } = new URL(databaseUrl)
  return `The database ${pathname.slice(1)} at ${host} cannot be used as ${username || 'an unnamed user'}: ${sentenceOf(error)}. Check DATABASE_URL, and that PostgreSQL runs there.`
}

/** A host name with several addresses fails with an AggregateError without a message of its own. */
function sentenceOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return sentenceOf(error.errors[0])
  return messageWithoutStatement(messageOf(error))
}

/** Checks that the secret key opens the oldest private key: with another key no account could decrypt or sign. */
async function checkSecretKey(db: Knex, secrets: Secrets, { secretKey, dataDir }: Config): Promise<void> {
  const oldest = await UserSecrets.query(db).orderBy('userId').first()
  if (oldest === undefined) return
  try {
    decryptStoredPrivateKey(secrets, oldest)
  } catch (cause) {
    const place = secretKey === undefined ? `the file secret-key in ${dataDir}` : 'SECRET_KEY'
    throw new StartError(
      `The accounts of this pod were made with another secret key than the one in ${place}: bring the old one back.`,
      { cause },
    )
  }
}

/** A pod whose take-over has not ended has no complete data, and the old pod may still run. */
async function checkTakeOver(db: Knex): Promise<void> {
  const state = (await findTakeOver(db))?.state
  if (state !== 'copying' && state !== 'built') return
  throw new StartError(
    'This pod is taking over another one: end the take-over with "pod take-over switch", or give it up with "pod take-over abort".',
  )
}

/** Throws a StartError if a command moves the database or has loaded only a part of it. */
export async function requireCompleteDatabase(db: Knex): Promise<void> {
  if (await isDatabaseMoving(db)) {
    throw new StartError('A command is moving this database to another server: wait until it has ended.')
  }
  const source = await findUnfinishedRestore(db)
  if (source === MOVE_SOURCE) {
    throw new StartError('The database holds an unfinished move: run the same "pod db move" again, with --again.')
  }
  if (source !== undefined) {
    throw new StartError(
      `The database holds an unfinished restore of backup ${source}: run the same "pod backup restore" again.`,
    )
  }
}

/** Processes that run write a heartbeat every five seconds. */
const HEARTBEAT_CHECK_INTERVAL_MS = 500

/**
 * Throws a StartError if an isolated copy would change the data of its original, which runs. Rows of processes that were killed stay:
 * they are too old after 30 seconds, and those of a process that runs are written again in the meantime.
 */
export async function requireOwnDatabase(db: Knex, log: Logger, signal?: AbortSignal): Promise<void> {
  let lastSeen = await findHeartbeatOfOriginal(db)
  if (lastSeen === undefined) return
  log.warn('heartbeats of the original pod are on this database: the copy waits up to 30 seconds for newer ones')
  for (;;) {
    await pause(HEARTBEAT_CHECK_INTERVAL_MS, undefined, signal && { signal })
    const seen = await findHeartbeatOfOriginal(db)
    if (seen === undefined) return
    if (seen > lastSeen) break
    lastSeen = seen
  }
  throw new StartError(
    'ISOLATED=true changes no data of the original pod, but its processes run on this database: set DATABASE_URL or DATA_DIR to those of the copy.',
  )
}

async function checkMigrations(db: Knex): Promise<void> {
  await requireCompleteDatabase(db)
  const { pending } = await migrationStatus(db)
  if (pending.length === 0) return
  throw new StartError(
    `The database is not ready for this version: ${pending.join(', ')} must still run. Use "node dist/bin/pod.js db migrate".`,
  )
}
