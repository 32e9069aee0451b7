import type { Command } from 'commander'
import type { Knex } from 'knex'
import { type Config, readConfig } from '../../src/config/config.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { migrate, migrationStatus, rollback } from '../../src/persistence/database/database.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, table } from '../output.js'
import { readCommandConfig } from '../read-command-config.js'
import { requireDatabase, withDatabase } from '../with-pod.js'

export function databaseCommands(program: Command): void {
  const db = program.command('db').description('Migrations of the database.')

  db.command('migrate')
    .description('Applies pending migrations to the tables and the queue.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  DATABASE_URL=postgres://pod@db.example/pod pod db migrate')
    .action(bringUpToDate)

  db.command('status')
    .description('Lists migrations: applied, pending, or of a newer release.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod db status')
    .action(status)

  db.command('rollback')
    .description('Rolls back the last batch of migrations; data in their tables and columns is deleted.')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod db rollback --yes')
    .action(takeBack)
}

async function bringUpToDate(options: OutputOptions): Promise<void> {
  const applied = await withDatabase(readConfig(process.env), async (db: Knex, url: string) => {
    const names = await migrate(db)
    await migrateQueue(url)
    return names
  })
  print(options, { applied }, [
    ...applied.map((name) => `applied ${name}`),
    applied.length === 0
      ? 'The database is up to date.'
      : `${applied.length} migrations applied; the database is up to date.`,
  ])
}

/** The settings of a pod with a database: only `db migrate` creates one. */
async function existingPod(): Promise<Config> {
  const config = await readCommandConfig(process.env)
  await requireDatabase(config)
  return config
}

async function status(options: OutputOptions): Promise<void> {
  const found = await withDatabase(await existingPod(), migrationStatus)
  const { applied, pending, unknown } = found
  print(options, found, [
    ...table([
      ...applied.map((name) => [name, 'applied']),
      ...pending.map((name) => [name, 'to come']),
      ...unknown.map((name) => [name, 'of a newer release']),
    ]),
    pending.length === 0 ? 'The database is up to date.' : 'Bring it up to date with: pod db migrate',
  ])
}

async function takeBack(options: OutputOptions & { yes?: boolean }): Promise<void> {
  if (!options.yes) {
    throw new CommandError('Rolling back migrations deletes their data: add --yes to confirm.')
  }
  const removed = await withDatabase(await existingPod(), rollback)
  print(options, { removed }, [
    ...removed.map((name) => `rolled back ${name}`),
    removed.length === 0 ? 'There was nothing to roll back.' : `${removed.length} migrations rolled back.`,
  ])
}
