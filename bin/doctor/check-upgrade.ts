import { statfs } from 'node:fs/promises'
import type { Knex } from 'knex'
import { migrations } from '../../migrations/index.js'
import { type Config, isNameOfSetting } from '../../src/config/config.js'
import { readSoftware } from '../../src/config/software.js'
import {
  type CheckResult,
  checkFailure,
  checkPassed,
  checkWarning,
  withCheckFailure,
} from '../../src/domain/operations/check-result.js'
import { messageOf } from '../../src/errors/thrown.js'
import { readRedisVersion } from '../../src/jobs/queues/redis-version.js'
import { migrationStatus } from '../../src/persistence/database/migrate.js'
import { findBackupAge } from '../../src/persistence/operations/backup-runs.js'
import { listProcesses } from '../../src/persistence/operations/processes.js'
import {
  readDatabaseSize,
  readLargestIndexBytes,
  readServerProperties,
  type ServerProperties,
} from '../../src/persistence/operations/server-properties.js'
import { MIN_POSTGRESQL } from './check-database.js'

const MIN_NODE = [20, 19] as const
const MIN_REDIS = [6, 2] as const
const RECENT_BACKUP_HOURS = 26
const MIN_FREE_MIB = 100

/** Checks whether this version of the program may start on the database of the pod. Only reads. */
export async function checkUpgrade(
  db: Knex,
  config: Config,
  environment: NodeJS.ProcessEnv = {},
): Promise<readonly CheckResult[]> {
  return [
    describeProgram(),
    checkSettings(environment),
    checkNode(process.versions.node),
    ...(await withCheckFailure('postgresql', async () => [checkPostgresql(await readServerProperties(db))])),
    ...(config.redisUrl === undefined ? [] : [await checkQueueServer(config.redisUrl)]),
    ...(await withCheckFailure('migrations', async () => [await checkMigrations(db)])),
    ...(await withCheckFailure('disk', async () => [await checkDisk(db, config)])),
    ...(await withCheckFailure('backup', async () => [await checkBackup(db)])),
    ...(await withCheckFailure('processes', async () => [await checkProcesses(db)])),
  ]
}

/** All migrations are part of the program, so no version has to be installed in between. */
function describeProgram(): CheckResult {
  return checkPassed(
    'program',
    `This is version ${readSoftware().version}. Every earlier version can be upgraded to it directly.`,
  )
}

/** Beginnings of names that only settings of the pod have. */
const SETTING_PREFIX = /^(BACKUP|IMPORT|PHOTO|RETENTION|S3|SIGN_UP|SPAM|UPLOADS|WORKER)_/

/** A setting that this version does not have has no effect, for example because it was renamed. */
export function checkSettings(environment: NodeJS.ProcessEnv): CheckResult {
  const settingNames = Object.keys(environment).filter((name) => SETTING_PREFIX.test(name) && environment[name] !== '')
  const unknown = settingNames.filter((name) => !isNameOfSetting(name.replace(/_FILE$/, '')))
  return unknown.length === 0
    ? checkPassed('settings', 'This version has all settings that are set.')
    : checkWarning(
        'settings',
        `This version has no setting ${unknown.join(', ')}: look for its new name in docs/settings.md, or remove it.`,
      )
}

export function checkNode(version: string): CheckResult {
  return isOlder(version, MIN_NODE)
    ? checkFailure('node', `Node ${version} is too old: install Node ${MIN_NODE.join('.')} or newer, best 22 or 24.`)
    : checkPassed('node', `Node ${version}.`)
}

function isOlder(version: string, [oldestMajor, oldestMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < oldestMajor || (major === oldestMajor && minor < oldestMinor)
}

export function checkPostgresql({
  version,
  versionNumber,
}: Pick<ServerProperties, 'version' | 'versionNumber'>): CheckResult {
  return versionNumber < MIN_POSTGRESQL
    ? checkFailure('postgresql', `PostgreSQL ${version} is too old: upgrade it to 14 or newer.`)
    : checkPassed('postgresql', `PostgreSQL ${version}.`)
}

async function checkQueueServer(redisUrl: string): Promise<CheckResult> {
  try {
    return checkRedis(await readRedisVersion(redisUrl))
  } catch (error) {
    return checkFailure(
      'redis',
      `Redis does not answer (${messageOf(error)}): check REDIS_URL and that Redis is running.`,
    )
  }
}

export function checkRedis(version: string): CheckResult {
  return isOlder(version, MIN_REDIS)
    ? checkFailure('redis', `Redis ${version} is too old: upgrade it to ${MIN_REDIS.join('.')} or newer.`)
    : checkPassed('redis', `Redis ${version}.`)
}

async function checkMigrations(db: Knex): Promise<CheckResult> {
  const { pending, unknown } = await migrationStatus(db)
  if (unknown.length > 0) {
    return checkWarning('migrations', `The database has migrations of a newer version: ${unknown.join(', ')}.`)
  }
  if (pending.length === 0) return checkPassed('migrations', 'The tables match this version.')
  const size = await readDatabaseSize(db)
  const kinds = await Promise.all(pending.map(describeMigration))
  return checkFailure(
    'migrations',
    `${pending.length} migrations are pending on a database of ${size} (${kinds.join('; ')}): run "pod db migrate".`,
  )
}

async function describeMigration(name: string): Promise<string> {
  const migration = await migrations.get(name)?.()
  return migration?.config?.transaction === false ? `${name}, an index made while the pod runs` : name
}

/** The disk of the data folder. The disk of another database server cannot be seen. */
async function checkDisk(db: Knex, { databaseUrl, dataDir }: Config): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(dataDir)
  if (databaseUrl !== undefined) {
    const { state, check, message } = checkFreeDisk(dataDir, bavail * bsize, 0)
    return { state, check, message: `${message} The disk of the database server is not checked.` }
  }
  return checkFreeDisk(dataDir, bavail * bsize, await readLargestIndexBytes(db))
}

/**
 * A new index may be as large as the largest one, and its rows are sorted in temporary files next to it. The rest is for the log of the
 * database and for uploads.
 */
export function checkFreeDisk(folder: string, freeBytes: number, largestIndexBytes: number): CheckResult {
  const neededMiB = MIN_FREE_MIB + Math.ceil((2 * largestIndexBytes) / 2 ** 20)
  const free = Math.floor(freeBytes / 2 ** 20)
  return free < neededMiB
    ? checkFailure(
        'disk',
        `${free} MiB are free in ${folder}, and an upgrade may need ${neededMiB} MiB: free some space.`,
      )
    : checkPassed('disk', `${free} MiB are free in ${folder}.`)
}

async function checkBackup(db: Knex): Promise<CheckResult> {
  const age = await findBackupAge(db)
  if (age === null)
    return checkWarning('backup', 'There is no backup of this pod: run "pod backup create" before the upgrade.')
  const hours = Math.floor(age / 3_600)
  return hours >= RECENT_BACKUP_HOURS
    ? checkWarning('backup', `The last backup is ${hours} hours old: run "pod backup create" before the upgrade.`)
    : checkPassed('backup', `The last backup is ${hours} hours old.`)
}

async function checkProcesses(db: Knex): Promise<CheckResult> {
  const { version } = readSoftware()
  const hasTable = await db.schema.hasTable('processes')
  const others = hasTable ? (await listProcesses(db)).filter((each) => each.version !== version) : []
  if (others.length === 0) return checkPassed('processes', `No process of another version than ${version} runs.`)
  const names = others.map((each) => `${each.kind} ${each.pid} on ${each.host} (${each.version})`)
  return checkFailure('processes', `Processes of another version than ${version} run: restart ${names.join(', ')}.`)
}
