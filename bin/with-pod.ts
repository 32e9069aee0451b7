import type { Knex } from 'knex'
import { hasEmbeddedPostgres } from '../embedded-postgres/embedded-postgres.js'
import type { Config } from '../src/config/config.js'
import { openLog, STDERR } from '../src/logging/log.js'
import { openDatabase } from '../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../src/persistence/database/limits.js'
import { openServices } from '../src/services/open-services.js'
import { hasSecretKey } from '../src/services/secrets.js'
import type { Services } from '../src/services/services.js'
import { openCryptoPool } from '../workers/threads/crypto-pool.js'
import { borrowDatabase, migrateIfNew } from './borrow-database.js'
import { CommandError } from './command-error.js'
import { explainDatabaseErrors } from './explain-database-error.js'
import { readCommandConfig, refuseOtherAddress } from './read-command-config.js'

interface PodOptions {
  /** Commands that create accounts may be the first: they create the embedded database. */
  readonly makesPod?: boolean
}

/** Opens the pod for one command and closes it afterwards, so that the process can end. */
export async function withPod<Result>(
  run: (services: Services) => Promise<Result>,
  { makesPod = false }: PodOptions = {},
): Promise<Result> {
  const config = await readCommandConfig(process.env)
  if (makesPod) await refuseOtherAddress(config)
  else await requirePod(config)
  const database = await borrowDatabase(config)
  try {
    if (makesPod && config.databaseUrl === undefined) await migrateIfNew(database.url)
    return await explainDatabaseErrors(database.url, () =>
      withConfiguredPod({ ...config, databaseUrl: database.url }, run),
    )
  } finally {
    await database.release()
  }
}

export async function requireDatabase(config: Config): Promise<void> {
  if (config.databaseUrl !== undefined || (await hasEmbeddedPostgres(config.dataDir))) return
  throw new CommandError(
    `There is no pod in ${config.dataDir}: start one with npm start, or set DATA_DIR or DATABASE_URL.`,
  )
}

/** Commands that read or change a pod create neither database nor key. */
export async function requirePod(config: Config): Promise<void> {
  await requireDatabase(config)
  if (!(await hasSecretKey(config))) {
    throw new CommandError(
      `There is no secret key in ${config.dataDir}: set SECRET_KEY or DATA_DIR as the pod has them.`,
    )
  }
}

/** Opens only the database, for commands that work without tables. */
export async function withDatabase<Result>(
  config: Config,
  run: (db: Knex, url: string) => Promise<Result>,
): Promise<Result> {
  const database = await borrowDatabase(config)
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: database.url, applicationName: 'pod command' })
  try {
    return await explainDatabaseErrors(database.url, () => run(db, database.url))
  } finally {
    await db.destroy()
    await database.release()
  }
}

/** Opens the pod on a database that this process does not manage. */
export async function withConfiguredPod<Result>(
  config: Config,
  run: (services: Services) => Promise<Result>,
): Promise<Result> {
  const crypto = openCryptoPool(1)
  try {
    // Commands print their own answer; only warnings and errors are logged, to stderr.
    const logLevel = config.logLevel === 'info' ? 'error' : config.logLevel
    const log = openLog({ ...config, logLevel }, 'command', STDERR)
    const services = await openServices(config, 'command', { crypto, log })
    try {
      return await run(services)
    } finally {
      await services.close()
    }
  } finally {
    await crypto.close()
  }
}
