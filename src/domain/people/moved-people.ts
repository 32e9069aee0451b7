import {
  findEnvelopeOfMove,
  findMovedPerson,
  findRecentAddresses,
  type MovedPerson,
} from '../../persistence/people/moved-people.js'
import { isGuid } from '../../protocol/values.js'
import type { Services } from '../../services/services.js'

export type { MovedPerson }

/** Finds a local person who has moved to another account: the old address leads there. */
export async function findMovedLocalPerson(
  { db }: Pick<Services, 'db'>,
  by: { readonly guid: string } | { readonly address: string },
): Promise<MovedPerson | undefined> {
  if ('guid' in by && !isGuid(by.guid)) return undefined
  return findMovedPerson(db, by)
}

/** The signed message of a move from or to this pod, by the guid of the old account. */
export async function findMoveEnvelope({ db }: Pick<Services, 'db'>, oldGuid: string): Promise<string | undefined> {
  return isGuid(oldGuid) ? findEnvelopeOfMove(db, oldGuid) : undefined
}

/** Time for which a page names the former address of a person. */
const FORMER_ADDRESS_DAYS = 30

/** The addresses that a person had until recently, which their page names. */
export async function listFormerAddresses({ db }: Pick<Services, 'db'>, personId: number): Promise<readonly string[]> {
  return findRecentAddresses(db, personId, FORMER_ADDRESS_DAYS)
}
