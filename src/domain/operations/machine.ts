import { type DatabaseFacts, readDatabaseFacts } from '../../persistence/operations/database-facts.js'
import { listProcesses, type PodProcess } from '../../persistence/operations/processes.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { type StorageFacts, storageFacts } from './storage.js'

export async function listRunningProcesses({ db }: Pick<Pod, 'db'>, actor: Actor): Promise<readonly PodProcess[]> {
  requirePower(actor, 'administration')
  return listProcesses(db)
}

export async function readDatabase({ db }: Pick<Pod, 'db'>, actor: Actor): Promise<DatabaseFacts> {
  requirePower(actor, 'administration')
  return readDatabaseFacts(db)
}

export async function readStorage(pod: Pick<Pod, 'config'>, actor: Actor): Promise<readonly StorageFacts[]> {
  requirePower(actor, 'administration')
  return storageFacts(pod)
}
