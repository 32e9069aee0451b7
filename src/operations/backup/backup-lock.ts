import { openUnlimitedSession } from '../../persistence/database/database.js'
import { findLatestRun, lockBackups } from '../../persistence/operations/backup-runs.js'
import type { Pod } from '../../pod/pod.js'
import { BackupError } from './backup-error.js'

/** Runs work while no other process of this pod makes or removes backups. Refuses if one does. */
export async function withBackupLock<Result>({ db }: Pick<Pod, 'db'>, work: () => Promise<Result>): Promise<Result> {
  const lock = await openUnlimitedSession(db, 'backup lock')
  try {
    if (!(await lockBackups(lock))) throw await alreadyRunning(db)
    return await work()
  } finally {
    await lock.end().catch(() => undefined)
  }
}

async function alreadyRunning(db: Pod['db']): Promise<BackupError> {
  const run = await findLatestRun(db)
  const which = run === undefined ? '' : `: ${run.id}, begun at ${run.startedAt.toISOString()} by ${run.process}`
  return new BackupError(`A backup of this pod is running already${which}. Wait until it has ended.`)
}
