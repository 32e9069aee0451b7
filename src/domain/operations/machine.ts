import { readSoftware } from '../../config/software.js'
import { queueFacts } from '../../jobs/operations/queue-facts.js'
import { type BackupFigures, readBackupFigures } from '../../persistence/operations/backup-runs.js'
import { listChecks } from '../../persistence/operations/checks.js'
import { type DatabaseFacts, readDatabaseFacts } from '../../persistence/operations/database-facts.js'
import { listProcesses, type PodProcess } from '../../persistence/operations/processes.js'
import { listRequestedStates } from '../../persistence/operations/queue-controls.js'
import type { Pod } from '../../pod/pod.js'
import { cachedAnswer } from '../../throttling/cached-answer.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { findNewerRelease } from './newer-release.js'
import { type StorageFacts, storageFacts } from './storage.js'

export async function listRunningProcesses({ db }: Pick<Pod, 'db'>, actor: Actor): Promise<readonly PodProcess[]> {
  requirePower(actor, 'administration')
  return listProcesses(db)
}

export async function readDatabase({ db }: Pick<Pod, 'db'>, actor: Actor): Promise<DatabaseFacts> {
  requirePower(actor, 'administration')
  return readDatabaseFacts(db)
}

export async function readBackups({ db }: Pick<Pod, 'db'>, actor: Actor): Promise<BackupFigures> {
  requirePower(actor, 'administration')
  return readBackupFigures(db)
}

export async function readStorage(pod: Pick<Pod, 'config'>, actor: Actor): Promise<readonly StorageFacts[]> {
  requirePower(actor, 'administration')
  return storageFacts(pod)
}

type WorkPod = Pick<Pod, 'db' | 'jobs' | 'config'>

/** What the overview shows of the work of the pod. */
export type WorkFacts = Awaited<ReturnType<typeof readWork>>

/** The overview is reloaded often, and its figures read all queues. */
const FRESH_MS = 2_000

/** Opens reads of the work of the pod; admins share a read for two seconds. */
export function openWorkFacts(pod: WorkPod): (actor: Actor) => Promise<WorkFacts> {
  const facts = cachedAnswer(() => readWork(pod), FRESH_MS)
  return async (actor) => {
    requirePower(actor, 'administration')
    return facts()
  }
}

async function readWork(pod: WorkPod) {
  const [facts, processes, requestedStates, folders, checks, newerRelease, backup] = await Promise.all([
    queueFacts(pod),
    listProcesses(pod.db),
    listRequestedStates(pod.db),
    storageFacts(pod),
    listChecks(pod.db),
    findNewerRelease(pod, readSoftware().version),
    readBackupFigures(pod.db),
  ])
  return { facts, processes, requestedStates, folders, checks, newerRelease, backup }
}
