import { statfs } from 'node:fs/promises'
import type { Knex } from 'knex'
import { migrations } from '../../migrations/index.js'
import type { Config } from '../../src/config/config.js'
import { readSoftware } from '../../src/config/software.js'
import { type Finding, fail, ok, orFail, warn } from '../../src/domain/operations/finding.js'
import { migrationStatus } from '../../src/persistence/database/database.js'
import { readBackupFigures } from '../../src/persistence/operations/backup-runs.js'
import { listProcesses } from '../../src/persistence/operations/processes.js'

const OLDEST_POSTGRESQL = 140_000
const OLDEST_NODE = [20, 19] as const
const RECENT_BACKUP_HOURS = 26

/** Checks whether this version of the program may start on the database of the pod. Only reads. */
export async function checkUpgrade(db: Knex, config: Config): Promise<readonly Finding[]> {
  return [
    checkNode(process.versions.node),
    ...(await orFail('postgresql', async () => [await checkPostgresql(db)])),
    ...(await orFail('migrations', async () => [await checkMigrations(db)])),
    ...(await orFail('disk', async () => [await checkDisk(db, config)])),
    ...(await orFail('backup', async () => [await checkBackup(db)])),
    ...(await orFail('processes', async () => [await checkProcesses(db)])),
  ]
}

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  const isOld = major < oldestMajor || (major === oldestMajor && minor < oldestMinor)
  return isOld
    ? fail('node', `Node ${version} is too old: install Node ${OLDEST_NODE.join('.')} or newer, best 22 or 24.`)
    : ok('node', `Node ${version}.`)
}

async function checkPostgresql(db: Knex): Promise<Finding> {
  const { rows } = await db.raw(
    `select current_setting('server_version_num')::integer as number, current_setting('server_version') as name`,
  )
  const { number, name } = rows[0]
  return number < OLDEST_POSTGRESQL
    ? fail('postgresql', `PostgreSQL ${name} is too old: upgrade it to 14 or newer.`)
    : ok('postgresql', `PostgreSQL ${name}.`)
}

async function checkMigrations(db: Knex): Promise<Finding> {
  const { pending, unknown } = await migrationStatus(db)
  if (unknown.length > 0) {
    return warn('migrations', `The database has migrations of a newer version: ${unknown.join(', ')}.`)
  }
  if (pending.length === 0) return ok('migrations', 'The tables are those of this version.')
  const { rows } = await db.raw('select pg_size_pretty(pg_database_size(current_database())) as size')
  const kinds = pending.map((name) => (isConcurrent(name) ? `${name}, an index made while the pod runs` : name))
  return fail(
    'migrations',
    `${pending.length} migrations are pending on a database of ${rows[0].size} (${kinds.join('; ')}): run "pod db migrate".`,
  )
}

function isConcurrent(name: string): boolean {
  return migrations.get(name)?.config?.transaction === false
}

/** The disk of the embedded database; that of another server cannot be seen. */
async function checkDisk(db: Knex, { databaseUrl, dataDir }: Config): Promise<Finding> {
  if (databaseUrl !== undefined) return ok('disk', 'The database is on another server, whose disk is not checked.')
  const { rows } = await db.raw(`
    select coalesce(max(pg_relation_size(oid)), 0)::float as bytes from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'i'`)
  const { bavail, bsize } = await statfs(dataDir)
  const needed = Math.ceil((2 * rows[0].bytes) / 2 ** 20)
  const free = Math.floor((bavail * bsize) / 2 ** 20)
  return free < needed
    ? fail('disk', `${free} MiB are free in ${dataDir}, and a new index may need ${needed} MiB: free some space.`)
    : ok('disk', `${free} MiB are free in ${dataDir}.`)
}

async function checkBackup(db: Knex): Promise<Finding> {
  const { rows } = await db.raw(`select to_regclass('public.backup_runs') is not null as known`)
  const age = rows[0].known ? (await readBackupFigures(db)).age : null
  if (age === null) return warn('backup', 'There is no backup of this pod: run "pod backup create" before the upgrade.')
  const hours = Math.floor(age / 3_600)
  return hours >= RECENT_BACKUP_HOURS
    ? warn('backup', `The last backup is ${hours} hours old: run "pod backup create" before the upgrade.`)
    : ok('backup', `The last backup is ${hours} hours old.`)
}

async function checkProcesses(db: Knex): Promise<Finding> {
  const { version } = readSoftware()
  const { rows } = await db.raw(`select to_regclass('public.processes') is not null as known`)
  const others = rows[0].known ? (await listProcesses(db)).filter((each) => each.version !== version) : []
  if (others.length === 0) return ok('processes', `No process of another version than ${version} runs.`)
  const names = others.map((each) => `${each.kind} ${each.pid} on ${each.host} (${each.version})`)
  return fail('processes', `Processes of another version than ${version} run: restart ${names.join(', ')}.`)
}
