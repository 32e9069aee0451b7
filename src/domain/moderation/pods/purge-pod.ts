import { type PodHost, RemotePod } from '../../../persistence/models/remote-pod.js'
import { deletePerson } from '../../../persistence/people/delete-person.js'
import {
  countPeopleOfPod,
  countRowsOfPod,
  listPeopleOfPod,
  type PodRows,
} from '../../../persistence/people/people-of-pod.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { recordOperatorChange } from '../../operations/record-operator-change.js'
import { requirePodChange } from '../../operations/require-pod-change.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'

const PERSON_BATCH_SIZE = 100

/**
 * Deletes the people of a blocked pod with all that came from them, person by person; returns how many. The audit entry is written
 * first: a purge that stops halfway has one, and goes on with the next call.
 */
export async function purgePod(
  services: ModerationServices,
  actor: Actor,
  { id, ...podHost }: PodHost & { readonly id: number },
  options: { readonly reason?: string | undefined },
): Promise<number> {
  const auditFields = requirePodChange(actor, podHost, options)
  const { db, now } = services
  await recordOperatorChange(services, actor, { action: 'pod.purge', ...auditFields }, async (transaction) => {
    const pod = await RemotePod.query(transaction).findById(id).select('blockedAt')
    if (!pod?.blockedAt) throw new Refusal('bad_transition', 'Block the pod first.')
    return { people: await countPeopleOfPod(transaction, id) }
  })
  for (let purgedPeople = 0; ; ) {
    const ids = await listPeopleOfPod(db, id, PERSON_BATCH_SIZE)
    if (ids.length === 0) return purgedPeople
    for (const personId of ids) await deletePerson(db, personId, now())
    purgedPeople += ids.length
  }
}

/** Counts what a purge of this pod would delete. */
export async function previewPodPurge(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  { host, port }: PodHost,
): Promise<PodRows> {
  requirePower(actor, 'administration')
  const pod = await RemotePod.query(db).findOne({ host, port }).select('id')
  return countRowsOfPod(db, pod?.id ?? null)
}
