import { findEnvelopeOfMove, findMovedPerson, type MovedPerson } from '../../persistence/people/moved-people.js'
import type { Pod } from '../../pod/pod.js'
import { isGuid } from '../../protocol/values.js'

export type { MovedPerson }

/** Finds a person of this pod who has moved to another account: the old address leads there. */
export async function findMovedLocalPerson(
  { db }: Pick<Pod, 'db'>,
  by: { readonly guid: string } | { readonly address: string },
): Promise<MovedPerson | undefined> {
  if ('guid' in by && !isGuid(by.guid)) return undefined
  return findMovedPerson(db, by)
}

/** The signed message of a move from or to this pod, by the guid of the old account. */
export async function findMoveEnvelope({ db }: Pick<Pod, 'db'>, oldGuid: string): Promise<string | undefined> {
  return isGuid(oldGuid) ? findEnvelopeOfMove(db, oldGuid) : undefined
}
