import type { Command } from 'commander'
import type { Config } from '../../src/config/config.js'
import { checkMail } from '../../src/domain/operations/check-mail.js'
import { type CheckResult, withCheckFailure } from '../../src/domain/operations/check-result.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { type BorrowedDatabase, borrowDatabase } from '../borrow-database.js'
import { CommandError } from '../command-error.js'
import { checkBackups } from '../doctor/check-backups.js'
import { checkDatabase } from '../doctor/check-database.js'
import { checkMachine } from '../doctor/check-machine.js'
import { checkMovedPhotos } from '../doctor/check-moved-photos.js'
import { checkQueue } from '../doctor/check-queue.js'
import { checkReplica } from '../doctor/check-replica.js'
import { checkTakeOver } from '../doctor/check-take-over.js'
import { explainDatabaseErrors } from '../explain-database-error.js'
import { type OutputOptions, print, table } from '../output.js'
import { readCommandConfig } from '../read-command-config.js'
import { requirePod, withConfiguredPod } from '../with-pod.js'

export function doctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('Checks the pod for common problems and names a remedy for each.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod doctor')
    .action(async (options: OutputOptions) => {
      const findings = await examine(await readCommandConfig(process.env))
      const failureCount = findings.filter(({ state }) => state === 'fail').length
      print(
        options,
        { healthy: failureCount === 0, findings },
        table(findings.map(({ state, check, message }) => [state, check, message])),
      )
      if (failureCount > 0)
        throw new CommandError(failureCount === 1 ? 'One check failed.' : `${failureCount} checks failed.`)
    })
}

async function examine(config: Config): Promise<readonly CheckResult[]> {
  const missing = await withCheckFailure('pod', async () => {
    await requirePod(config)
    return []
  })
  if (missing.length > 0) return missing
  const machine = await checkMachine(config)
  const backups = await withCheckFailure('backup', () => checkBackups(config, new Date()))
  const stores = await withCheckFailure('database', async () => {
    const database = await borrowDatabase(config)
    try {
      return await examineStores(config, database)
    } finally {
      await database.release()
    }
  })
  return [...machine, ...backups, ...stores]
}

async function examineStores(config: Config, { url }: BorrowedDatabase): Promise<readonly CheckResult[]> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'pod doctor' })
  try {
    const database = await withCheckFailure('database', () =>
      explainDatabaseErrors(url, () => checkDatabase(db, url, config)),
    )
    if (database.some(({ state }) => state === 'fail')) return database
    const replica = await withCheckFailure('replica', () => checkReplica(db, config))
    const takeOver = await withCheckFailure('take-over', () => checkTakeOver(db, new Date()))
    const movedPhotos = await withCheckFailure('moved photos', () => checkMovedPhotos(db))
    const mail = await withCheckFailure('mail', () => checkMail(db, config))
    const queue = await withCheckFailure('queue', () => withConfiguredPod({ ...config, databaseUrl: url }, checkQueue))
    return [...database, ...replica, ...takeOver, ...movedPhotos, ...mail, ...queue]
  } finally {
    await db.destroy()
  }
}
