import type { Knex } from 'knex'
import type { Logger } from 'pino'
import { type Config, namesOfSettings } from '../../src/config/config.js'
import { StartError } from '../../src/errors/start-error.js'
import { messageOf } from '../../src/errors/thrown.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { migrateQueue } from '../../src/jobs/queues/queue-schema.js'
import { createBackup } from '../../src/operations/backup/create-backup.js'
import { readRecipients } from '../../src/operations/backup/encryption.js'
import { openRepository } from '../../src/operations/backup/repositories/repository.js'
import { migrationStatus } from '../../src/persistence/database/migrate.js'
import { openPictureStorage } from '../../src/persistence/photos/open-pictures.js'
import { queuePrefix } from '../../src/services/open-services.js'

interface Start {
  readonly db: Knex
  readonly databaseUrl: string
  readonly log: Logger
  readonly signal: AbortSignal
}

/**
 * Creates a backup if BACKUP_TO and BACKUP_RECIPIENTS are set and migrations of a new version are pending. A new pod has nothing to
 * back up, and the backup of an isolated copy would count as the newest one of the original. Throws a StartError if the backup fails: the tables are then as before.
 */
export async function backUpBeforeMigrations(config: Config, start: Start): Promise<void> {
  const { backupTo, backupRecipients, isolated } = config
  if (backupTo === undefined || backupRecipients === '' || isolated) return
  const { applied, pending } = await migrationStatus(start.db)
  if (applied.length === 0 || pending.length === 0) return
  start.log.info({ pending: pending.length }, 'backup before migrations started')
  try {
    const id = await backUp(config, backupTo, start)
    start.log.info({ id }, 'backup before migrations complete')
  } catch (error) {
    if (start.signal.aborted) throw error
    throw new StartError(
      `Backup before migrations failed: ${messageOf(error)} Repair it and start again, or run "pod db migrate" without a backup.`,
      { cause: error },
    )
  }
}

async function backUp(config: Config, target: string, { db, databaseUrl, log, signal }: Start): Promise<string> {
  // The queue holds accepted messages, which belong to the backup, and only its newest tables can be read.
  await migrateQueue(databaseUrl)
  const { redisUrl, redisReplicas } = config
  const jobs = await openJobQueues({ redisUrl, redisReplicas, databaseUrl, log, prefix: queuePrefix(config) })
  try {
    const pod = { config, db, jobs, log, now: () => new Date(), pictures: openPictureStorage(config) }
    const { id } = await createBackup(pod, {
      repository: openRepository(target, config.backupS3),
      recipients: await readRecipients(config.backupRecipients),
      settings: namesOfSettings(process.env),
      signal,
      report: () => undefined,
    })
    return id
  } finally {
    await jobs.close()
  }
}
