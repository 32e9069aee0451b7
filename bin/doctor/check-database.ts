import type { Knex } from 'knex'
import type { Config } from '../../src/config/config.js'
import { readSoftware } from '../../src/config/software.js'
import { findHostMismatch } from '../../src/domain/accounts/accounts.js'
import { decryptStoredPrivateKey } from '../../src/domain/accounts/private-keys.js'
import { type CheckResult, checkFailure, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { findNewerRelease } from '../../src/domain/operations/newer-release.js'
import { QUEUE_POOLS } from '../../src/jobs/queues/postgres-store.js'
import { WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrationStatus } from '../../src/persistence/database/migrate.js'
import { UserSecrets } from '../../src/persistence/models/user.js'
import {
  hasCollationChanged,
  readServerProperties,
  type ServerProperties,
} from '../../src/persistence/operations/server-properties.js'
import { createSecrets, readSecretKey } from '../../src/services/secrets.js'
import { hostAndPort } from '../explain-database-error.js'

export const MIN_POSTGRESQL = 140_000
const COLLATION_VERSIONS_SINCE = 150_000
/** Connections reserved for commands and backups. */
const SPARE_CONNECTIONS = 5

/** Checks version, collation, connections, durability and migrations. */
export async function checkDatabase(db: Knex, url: string, config: Config): Promise<readonly CheckResult[]> {
  const server = await readServerProperties(db)
  const migrations = await checkMigrations(db)
  return [
    checkVersion(server, hostAndPort(url)),
    await checkCollation(db, server),
    checkConnections(server, config),
    ...checkDurability(server),
    migrations,
    ...(migrations.state === 'fail'
      ? []
      : [await checkSealedKeys(db, config), await checkHost(db, config), ...(await checkRelease(db, config))]),
  ]
}

/** Checks for a newer release, if UPDATE_CHECK_URL is set. */
async function checkRelease(db: Knex, { updateCheckUrl }: Config): Promise<readonly CheckResult[]> {
  if (updateCheckUrl === undefined) return []
  const { version } = readSoftware()
  const newer = await findNewerRelease({ db }, version)
  if (newer === undefined) return [checkPassed('version', `No newer version than ${version} is known.`)]
  return [
    checkWarning('version', `Version ${newer} is available; this is ${version}: read its section in the CHANGELOG.`),
  ]
}

function checkVersion({ version, versionNumber }: ServerProperties, place: string): CheckResult {
  return versionNumber >= MIN_POSTGRESQL
    ? checkPassed('database', `PostgreSQL ${version}, ${place}.`)
    : checkFailure('database', `PostgreSQL ${version}, ${place}, is too old: this pod needs PostgreSQL 14 or newer.`)
}

async function checkCollation(
  db: Knex,
  { encoding, collation, versionNumber }: ServerProperties,
): Promise<CheckResult> {
  if (encoding !== 'UTF8') {
    return checkFailure(
      'collation',
      `The database has the encoding ${encoding}: move it to a database that was created with encoding UTF8.`,
    )
  }
  if (versionNumber >= COLLATION_VERSIONS_SINCE && (await hasCollationChanged(db))) {
    return checkWarning(
      'collation',
      'The system collation has changed since the database was created: run "reindex database" and "alter database … refresh collation version".',
    )
  }
  return checkPassed('collation', `Encoding UTF8, collation ${collation}.`)
}

function checkConnections(server: ServerProperties, { databasePool, redisUrl }: Config): CheckResult {
  const queuePools = redisUrl === undefined ? 2 * QUEUE_POOLS.producers + QUEUE_POOLS.workers : 0
  const neededConnections =
    (databasePool ?? WEB_DATABASE_LIMITS.pool) +
    (databasePool ?? WORKER_DATABASE_LIMITS.pool) +
    queuePools +
    SPARE_CONNECTIONS
  const usage = `${server.connections} of ${server.maxConnections} connections are in use; one web and one worker process may take ${neededConnections}`
  return server.maxConnections >= neededConnections
    ? checkPassed('connections', `${usage}.`)
    : checkWarning('connections', `${usage}: raise max_connections of PostgreSQL, or lower DATABASE_POOL.`)
}

function checkDurability({ fsync, synchronousCommit }: ServerProperties): readonly CheckResult[] {
  if (fsync === 'off') {
    return [
      checkWarning(
        'durability',
        'PostgreSQL runs with fsync off: a power failure may destroy the database. Turn it on.',
      ),
    ]
  }
  if (synchronousCommit === 'off') {
    return [
      checkWarning(
        'durability',
        'PostgreSQL runs with synchronous_commit off: a crash may lose the last accepted messages. Turn it on.',
      ),
    ]
  }
  return []
}

async function checkMigrations(db: Knex): Promise<CheckResult> {
  const { applied, pending, unknown } = await migrationStatus(db)
  if (pending.length > 0)
    return checkFailure('migrations', `${pending.join(', ')} are not applied: use "pod db migrate".`)
  if (unknown.length > 0) {
    return checkWarning(
      'migrations',
      `The database has migrations of a newer version (${unknown.join(', ')}): use that version.`,
    )
  }
  return checkPassed('migrations', `All ${applied.length} migrations are applied.`)
}

async function checkHost(db: Knex, config: Config): Promise<CheckResult> {
  const mismatch = await findHostMismatch({ db, config })
  return mismatch === undefined
    ? checkPassed('accounts', `All accounts belong to ${config.host}.`)
    : checkFailure('accounts', mismatch)
}

/** A wrong key prevents the start; here it is reported with the other findings. */
async function checkSealedKeys(db: Knex, config: Config): Promise<CheckResult> {
  const newestSecrets = await UserSecrets.query(db).orderBy('userId', 'desc').first()
  if (newestSecrets === undefined) return checkPassed('sealed keys', 'There are no accounts yet.')
  try {
    decryptStoredPrivateKey(createSecrets(await readSecretKey(config)), newestSecrets)
    return checkPassed('sealed keys', 'The secret key opens the private keys of the accounts.')
  } catch {
    return checkFailure(
      'sealed keys',
      'The secret key is not the one with which the private keys of the accounts were sealed: bring back the old SECRET_KEY, or the file secret-key in DATA_DIR.',
    )
  }
}
