import type { Knex } from 'knex'
import type { Config } from '../../src/config/config.js'
import { readSoftware } from '../../src/config/software.js'
import { findHostMismatch } from '../../src/domain/accounts/accounts.js'
import { unsealPrivateKey } from '../../src/domain/accounts/private-keys.js'
import { type CheckResult, checkFailure, checkPassed, checkWarning } from '../../src/domain/operations/check-result.js'
import { findNewerRelease } from '../../src/domain/operations/newer-release.js'
import { QUEUE_POOLS } from '../../src/jobs/queues/postgres-store.js'
import { queryRow, queryRows } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { migrationStatus } from '../../src/persistence/database/migrate.js'
import { UserSecrets } from '../../src/persistence/models/user.js'
import { createSecrets, readSecretKey } from '../../src/services/secrets.js'
import { hostAndPort } from '../explain-database-error.js'

const MIN_VERSION = 140_000
const COLLATION_VERSIONS_SINCE = 150_000
/** Connections reserved for commands and backups. */
const SPARE_CONNECTIONS = 5

interface ServerProperties {
  readonly version: string
  readonly number: number
  readonly encoding: string
  readonly collation: string
  readonly connections: number
  readonly maxConnections: number
  readonly fsync: string
  readonly synchronousCommit: string
}

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

/** Only if UPDATE_CHECK_URL is set. */
async function checkRelease(db: Knex, { updateCheckUrl }: Config): Promise<readonly CheckResult[]> {
  if (updateCheckUrl === undefined) return []
  const { version } = readSoftware()
  const newer = await findNewerRelease({ db }, version)
  if (newer === undefined) return [checkPassed('version', `No newer version than ${version} is known.`)]
  return [
    checkWarning('version', `Version ${newer} is available; this is ${version}: read its section in the CHANGELOG.`),
  ]
}

async function readServerProperties(db: Knex): Promise<ServerProperties> {
  const [server] = await queryRows<ServerProperties>(
    db,
    `
    select
      current_setting('server_version') as "version",
      current_setting('server_version_num')::int as "number",
      pg_encoding_to_char(encoding) as "encoding",
      datcollate as "collation",
      (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as "connections",
      current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as "maxConnections",
      current_setting('fsync') as "fsync",
      current_setting('synchronous_commit') as "synchronousCommit"
    from pg_database where datname = current_database()`,
  )
  if (server === undefined) throw new Error('The database did not report its own settings.')
  return server
}

function checkVersion({ version, number }: ServerProperties, place: string): CheckResult {
  return number >= MIN_VERSION
    ? checkPassed('database', `PostgreSQL ${version}, ${place}.`)
    : checkFailure('database', `PostgreSQL ${version}, ${place}, is too old: this pod needs PostgreSQL 14 or newer.`)
}

async function checkCollation(db: Knex, { encoding, collation, number }: ServerProperties): Promise<CheckResult> {
  if (encoding !== 'UTF8') {
    return checkFailure(
      'collation',
      `The database has the encoding ${encoding}: move it to a database that was created with encoding UTF8.`,
    )
  }
  if (number >= COLLATION_VERSIONS_SINCE && (await hasCollationChanged(db))) {
    return checkWarning(
      'collation',
      'The system collation has changed since the database was created: run "reindex database" and "alter database … refresh collation version".',
    )
  }
  return checkPassed('collation', `Encoding UTF8, collation ${collation}.`)
}

async function hasCollationChanged(db: Knex): Promise<boolean> {
  const { hasChanged } = await queryRow<{ readonly hasChanged: boolean }>(
    db,
    `
    select datcollversion is distinct from pg_database_collation_actual_version(oid) as "hasChanged"
    from pg_database where datname = current_database()`,
  )
  return hasChanged
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
    unsealPrivateKey(createSecrets(await readSecretKey(config)), newestSecrets)
    return checkPassed('sealed keys', 'The secret key opens the private keys of the accounts.')
  } catch {
    return checkFailure(
      'sealed keys',
      'The secret key is not the one with which the private keys of the accounts were sealed: bring back the old SECRET_KEY, or the file secret-key in DATA_DIR.',
    )
  }
}
