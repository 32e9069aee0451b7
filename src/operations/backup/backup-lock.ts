import { withSessionLock } from '../../persistence/database/session-lock.js'
import { findLatestRun } from '../../persistence/operations/backup-runs.js'
import type { Services } from '../../services/services.js'
import { BackupError } from './backup-error.js'

/**
 * Runs work while no other process of this pod makes or removes backups. Refuses if one does. The signal of the work is also aborted
 * when the lock is lost.
 */
export async function withBackupLock<Result>(
  { db }: Pick<Services, 'db'>,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  return withSessionLock(db, 'backup', { signal, refuse: () => alreadyRunning(db) }, work)
}

async function alreadyRunning(db: Services['db']): Promise<BackupError> {
  const run = await findLatestRun(db)
  const which = run === undefined ? '' : `: ${run.id}, begun at ${run.startedAt.toISOString()} by ${run.process}`
  return new BackupError(`A backup of this pod is running already${which}. Wait until it has ended.`)
}
