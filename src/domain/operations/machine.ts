import { cacheResult } from '../../concurrency/cache-result.js'
import { readSoftware } from '../../config/software.js'
import { countFailedJobs } from '../../jobs/dead-letters/count-dead-letters.js'
import { readWorkStatus } from '../../jobs/operations/work-status.js'
import { type BackupMetrics, readBackupMetrics } from '../../persistence/operations/backup-runs.js'
import { listChecks } from '../../persistence/operations/checks.js'
import { type DatabaseStatus, readDatabaseStatus } from '../../persistence/operations/database-status.js'
import { listProcesses, type PodProcess } from '../../persistence/operations/processes.js'
import { listRequestedStates } from '../../persistence/operations/queue-controls.js'
import { findPictureCount, type PictureCount } from '../../persistence/photos/picture-counts.js'
import type { Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { readMovedFiles } from '../photos/moved-files.js'
import { findNewerRelease } from './newer-release.js'
import { type FolderSpace, readFolderSpaces } from './storage.js'

export async function listRunningProcesses({ db }: Pick<Services, 'db'>, actor: Actor): Promise<readonly PodProcess[]> {
  requirePower(actor, 'administration')
  return listProcesses(db)
}

export async function readDatabase({ db }: Pick<Services, 'db'>, actor: Actor): Promise<DatabaseStatus> {
  requirePower(actor, 'administration')
  return readDatabaseStatus(db)
}

export interface StorageReport {
  readonly folders: readonly FolderSpace[]
  /** The store of pictures: a folder or S3, and its last complete count; undefined: none was made yet. */
  readonly store: Services['pictures']['kind']
  readonly pictures: PictureCount | undefined
  /** Photos of accounts that have moved away whose files are not deleted yet. */
  readonly movedPhotos: number
  readonly backup: BackupMetrics
}

export async function readStorage(
  services: Pick<Services, 'config' | 'db' | 'pictures'>,
  actor: Actor,
): Promise<StorageReport> {
  requirePower(actor, 'administration')
  const [folders, pictures, { files: movedPhotos }, backup] = await Promise.all([
    readFolderSpaces(services),
    findPictureCount(services.db, 'complete'),
    readMovedFiles(services.db),
    readBackupMetrics(services.db),
  ])
  return { folders, store: services.pictures.kind, pictures, movedPhotos, backup }
}

type MachineDependencies = Pick<Services, 'config' | 'db' | 'jobs'>

/** The figures of the overview of the console. */
export type WorkReport = Awaited<ReturnType<typeof readWork>>

/** Milliseconds for which admins share a result: the overview is reloaded often, and its figures read all queues. */
const FRESH_MS = 2_000
/** The latest failed jobs of each queue that are counted. */
const FAILED_JOBS_READ = 1_000

/** Returns a function that reads the figures of the overview, or returns those of a moment ago. */
export function openWorkReport(
  services: MachineDependencies & Pick<Services, 'now'>,
): (actor: Actor) => Promise<WorkReport> {
  const work = cacheResult(
    () => readWork(services),
    FRESH_MS,
    () => services.now().getTime(),
  )
  return async (actor) => {
    requirePower(actor, 'administration')
    return work()
  }
}

async function readWork(services: MachineDependencies) {
  const [work, failedJobs, processes, requestedStates, folders, checks, newerRelease, backup] = await Promise.all([
    readWorkStatus(services),
    countFailedJobs(services, FAILED_JOBS_READ).catch(() => undefined),
    listProcesses(services.db),
    listRequestedStates(services.db),
    readFolderSpaces(services),
    listChecks(services.db),
    findNewerRelease(services, readSoftware().version),
    readBackupMetrics(services.db),
  ])
  return { work, failedJobs, processes, requestedStates, folders, checks, newerRelease, backup }
}
