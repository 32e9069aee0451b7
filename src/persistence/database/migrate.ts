import { setTimeout as pause } from 'node:timers/promises'
import createKnex, { type Knex } from 'knex'
import type pg from 'pg'
import { migrations } from '../../../migrations/index.js'
import type { Migration } from '../../../migrations/migration.js'
import { CONNECT_TIMEOUT_MS, NO_LOG, queryRow } from './database.js'
import { isDeadlock, isLockTimeout } from './errors.js'

export interface MigrateOptions {
  /** Migrations instead of those of the program, for tests. */
  readonly known?: Migrations
  /** Milliseconds for which a migration waits for the lock of a table. Requests queue behind it in the meantime. */
  readonly lockTimeout?: number
  /** Called before another try, when a table was locked for too long or in a deadlock. */
  readonly onBlocked?: (attempt: number) => Promise<void>
}

const MIGRATION_LOCK_TIMEOUT_MS = 3_000
const MIGRATION_TRIES = 10
/** Pause in milliseconds, so that requests that waited for the migration can run. */
const PAUSE_BETWEEN_TRIES = 1_000
/** Milliseconds between two checks whether another process has ended its migrations. */
const MIGRATION_LOCK_PAUSE = 100

/**
 * Applies pending migrations and returns their names. Processes that start at the same time run one after the other. A migration that
 * cannot lock a table in time, or whose locks end in a deadlock with a request, is tried again.
 */
export async function migrate(
  db: Knex,
  {
    known = migrations,
    lockTimeout = MIGRATION_LOCK_TIMEOUT_MS,
    onBlocked = () => pause(PAUSE_BETWEEN_TRIES),
  }: MigrateOptions = {},
): Promise<string[]> {
  return withMigrationLock(db, known, (migrationDb) => applyPending(migrationDb, known, onBlocked), lockTimeout)
}

/** The tables of a new database are made in one transaction; later each migration has its own, and keeps its locks for a shorter time. */
async function applyPending(
  migrationDb: Knex,
  known: Migrations,
  onBlocked: (attempt: number) => Promise<void>,
): Promise<string[]> {
  const { applied } = await migrationStatus(migrationDb)
  if (applied.length === 0) {
    const [, names]: [number, string[]] = await migrationDb.migrate.latest({
      ...SETTINGS,
      migrationSource: asOneTransaction(known),
    })
    return names
  }
  const [last = 0]: number[] = await migrationDb('knex_migrations').orderBy('batch', 'desc').limit(1).pluck('batch')
  const done: string[] = []
  for (let attempt = 1; ; ) {
    try {
      const [, names]: [number, string[]] = await migrationDb.migrate.up()
      if (names.length === 0) {
        // A rollback reverts all of them.
        await migrationDb('knex_migrations')
          .where('batch', '>', last)
          .update({ batch: last + 1 })
        return done
      }
      done.push(...names)
      attempt = 1
    } catch (error) {
      if (!(isLockTimeout(error) || isDeadlock(error)) || attempt === MIGRATION_TRIES) throw error
      await onBlocked(attempt)
      attempt += 1
    }
  }
}

/** Applies only these migrations, for the tables of an older version. */
export async function migrateTo(db: Knex, names: readonly string[]): Promise<void> {
  const chosenMigrations = new Map([...migrations].filter(([name]) => names.includes(name)))
  await withMigrationLock(db, chosenMigrations, async (migrationDb) => {
    await migrationDb.migrate.latest()
  })
}

/** Reverts the last batch of migrations and returns their names. */
export async function rollback(db: Knex): Promise<string[]> {
  const { unknown } = await migrationStatus(db)
  if (unknown.length > 0) throw new Error(`Only the release that added ${unknown.join(', ')} can revert it.`)
  return withMigrationLock(db, migrations, async (migrationDb) => {
    const [, names]: [number, string[]] = await migrationDb.migrate.rollback()
    return names
  })
}

export interface MigrationStatus {
  readonly applied: readonly string[]
  readonly pending: readonly string[]
  /** Applied by a newer release. The process starts nevertheless. */
  readonly unknown: readonly string[]
}

/** Reads the state of the migrations without creating the table of migrations. */
export async function migrationStatus(db: Knex): Promise<MigrationStatus> {
  const table = await queryRow<{ readonly exists: boolean }>(
    db,
    `select to_regclass('knex_migrations') is not null as exists`,
  )
  const done: string[] = table.exists ? await db('knex_migrations').orderBy('id').pluck('name') : []
  return {
    applied: done.filter((name) => migrations.has(name)),
    pending: [...migrations.keys()].filter((name) => !done.includes(name)),
    unknown: done.filter((name) => !migrations.has(name)),
  }
}

/** Runs work under a lock, on connections without time limits. */
async function withMigrationLock<Result>(
  db: Knex,
  known: Migrations,
  work: (migrationDb: Knex) => Promise<Result>,
  lockTimeout = 0,
): Promise<Result> {
  const settings: pg.ClientConfig = db.client.config.connection
  const migrationDb = createKnex({
    client: 'pg',
    connection: {
      ...(settings.connectionString && { connectionString: settings.connectionString }),
      application_name: `${settings.application_name} (migrations)`,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      keepAlive: true,
    },
    pool: { min: 0, max: 2, afterCreate: waitForLocks(lockTimeout) },
    log: NO_LOG,
    migrations: { ...SETTINGS, migrationSource: migrationSource(known) },
  })
  try {
    return await migrationDb.transaction(async (lock) => {
      // The lock is tried again instead of awaited in a statement: an index that another process makes concurrently would wait
      // for the snapshot of that statement.
      while (!(await tryMigrationLock(lock))) await pause(MIGRATION_LOCK_PAUSE)
      // With the advisory lock held, a lock in the library's own table was left by a killed process.
      await migrationDb.migrate.forceFreeMigrationsLock()
      return work(migrationDb)
    })
  } finally {
    await migrationDb.destroy()
  }
}

async function tryMigrationLock(lock: Knex.Transaction): Promise<boolean> {
  const { isLocked } = await queryRow<{ readonly isLocked: boolean }>(
    lock,
    `select pg_try_advisory_xact_lock(hashtextextended('migrations', 0)) as "isLocked"`,
  )
  return isLocked
}

/** Sets the longest wait for a lock of each connection. */
function waitForLocks(lockTimeout: number) {
  return (connection: pg.Client, done: (error: Error | null, connection: pg.Client) => void) => {
    connection.query(`set lock_timeout = ${lockTimeout}`, (error) => done(error ?? null, connection))
  }
}

type Migrations = typeof migrations

/** A database of a newer release has migrations that this one does not know. */
const SETTINGS = { disableMigrationsListValidation: true } as const

/** Returns the migrations so that all run in one transaction. */
function asOneTransaction(known: Migrations): Knex.MigrationSource<string> {
  const withoutConfig = async (load: () => Promise<Migration>): Promise<Migration> => {
    const { up, down } = await load()
    return { up, down }
  }
  return migrationSource(new Map([...known].map(([name, load]) => [name, () => withoutConfig(load)])))
}

/** Migration names without a file extension, which is .ts in tests and .js in production. */
function migrationSource(known: Migrations): Knex.MigrationSource<string> {
  return {
    getMigrations: async () => [...known.keys()],
    getMigrationName: (name) => name,
    async getMigration(name) {
      const load = known.get(name)
      if (load === undefined) throw new Error(`There is no migration ${name}.`)
      return load()
    },
  }
}
