import type { Command } from 'commander'
import type { Knex } from 'knex'
import { hasEmbeddedPostgres } from '../../embedded-postgres/embedded-postgres.js'
import { markMovedDatabase, unmarkMovedDatabase } from '../../embedded-postgres/moved.js'
import { type Config, readConfig } from '../../src/config/config.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { moveDatabase } from '../../src/operations/move-database.js'
import { migrate, migrationStatus, rollback } from '../../src/persistence/database/migrate.js'
import { borrowDatabase } from '../borrow-database.js'
import { CommandError } from '../command-error.js'
import { runInterruptible } from '../interruptible.js'
import { type OutputOptions, print, table } from '../output.js'
import { showProgress } from '../progress.js'
import { readCommandConfig } from '../read-command-config.js'
import { requireDatabase, withDatabase, withPod } from '../with-pod.js'

export function databaseCommands(program: Command): void {
  const db = program.command('db').description('Migrations and moves of the database.')

  db.command('migrate')
    .description('Applies pending migrations to the tables and the queue.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgres://pod@db.example/pod pod db migrate')
    .action(applyMigrations)

  db.command('status')
    .description('Lists migrations: applied, pending, or of a newer release.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod db status')
    .action(status)

  db.command('move')
    .description('Copies the database of the stopped pod from the embedded server to another one, or back.')
    .requiredOption('--to <url>', 'the new, empty database as postgres://…, or the word embedded')
    .option('--again', 'empty the new database after an interrupted move')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod db move --to postgres://pod:secret@localhost/pod')
    .action(move)

  db.command('rollback')
    .description('Rolls back the last batch of migrations; data in their tables and columns is deleted.')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod db rollback --yes')
    .action(rollBackMigrations)
}

interface MoveCommandOptions extends OutputOptions {
  readonly to: string
  readonly again?: boolean
}

/** Copies the database between the embedded server and another one, and marks the embedded one that is left. */
async function move({ to, again = false, ...output }: MoveCommandOptions): Promise<void> {
  const config = await readCommandConfig(process.env)
  const toEmbedded = to === 'embedded'
  if (toEmbedded !== (config.databaseUrl !== undefined)) {
    throw new CommandError(
      toEmbedded
        ? 'The database is the embedded one already: DATABASE_URL is not set.'
        : 'DATABASE_URL is set already: "db move --to embedded" moves its database into the data folder.',
    )
  }
  if (!toEmbedded && !/^postgres(ql)?:\/\//.test(to)) {
    throw new CommandError('--to must be an address that begins with postgres://, or the word embedded.')
  }
  if (toEmbedded && !again && (await hasEmbeddedPostgres(config.dataDir))) {
    throw new CommandError(
      `${config.dataDir} has an embedded database already: after an interrupted move add --again, else move its folder postgres away, or name another DATA_DIR.`,
    )
  }
  const progress = showProgress()
  const moveReport = await runInterruptible(
    'The old database is unchanged. Repeat the command with --again.',
    async (signal) => {
      if (toEmbedded) await unmarkMovedDatabase(config.dataDir)
      const target = toEmbedded ? await borrowDatabase({ ...config, databaseUrl: undefined }) : undefined
      try {
        // Before the pod may start again on the old database.
        const onMoved = async () => {
          if (!toEmbedded) await markMovedDatabase(config.dataDir)
        }
        const options = { isRepeated: again, onMoved, signal, report: progress.report }
        return await withPod((services) => moveDatabase(services, target?.url ?? to, options))
      } finally {
        await target?.release()
      }
    },
  ).finally(progress.end)
  print(output, { ...moveReport }, [
    `${moveReport.rows} rows of ${moveReport.tables} tables are copied and compared; ${moveReport.messages} accepted messages follow.`,
    toEmbedded
      ? 'Remove DATABASE_URL from the settings, and start the pod.'
      : 'Add this to the settings, and start the pod:',
    ...(toEmbedded ? [] : [`DATABASE_URL=${to}`]),
  ])
}

async function applyMigrations(options: OutputOptions): Promise<void> {
  const appliedMigrations = await withDatabase(readConfig(process.env), async (db: Knex, url: string) => {
    await migrateQueue(url) // before the tables of the pod: see migrateIfNew
    return migrate(db)
  })
  print(options, { applied: appliedMigrations }, [
    ...appliedMigrations.map((name) => `applied ${name}`),
    appliedMigrations.length === 0
      ? 'The database is up to date.'
      : `${appliedMigrations.length} migrations applied; the database is up to date.`,
  ])
}

/** The settings of a pod with a database: only `db migrate` creates one. */
async function existingPod(): Promise<Config> {
  const config = await readCommandConfig(process.env)
  await requireDatabase(config)
  return config
}

async function status(options: OutputOptions): Promise<void> {
  const migrations = await withDatabase(await existingPod(), migrationStatus)
  const { applied, pending, unknown } = migrations
  print(options, migrations, [
    ...table([
      ...applied.map((name) => [name, 'applied']),
      ...pending.map((name) => [name, 'to come']),
      ...unknown.map((name) => [name, 'of a newer release']),
    ]),
    pending.length === 0 ? 'The database is up to date.' : 'Bring it up to date with: pod db migrate',
  ])
}

async function rollBackMigrations(options: OutputOptions & { yes?: boolean }): Promise<void> {
  if (!options.yes) {
    throw new CommandError('Rolling back migrations deletes their data: add --yes to confirm.')
  }
  const rolledBackNames = await withDatabase(await existingPod(), rollback)
  print(options, { removed: rolledBackNames }, [
    ...rolledBackNames.map((name) => `rolled back ${name}`),
    rolledBackNames.length === 0
      ? 'There was nothing to roll back.'
      : `${rolledBackNames.length} migrations rolled back.`,
  ])
}
