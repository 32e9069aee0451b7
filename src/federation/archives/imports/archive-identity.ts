import { findMoveOfPerson } from '../../../persistence/archives/account-moves.js'
import { Person } from '../../../persistence/models/person.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { ProtocolError } from '../../../protocol/errors.js'
import type { Services } from '../../../services/services.js'
import { discoverPerson } from '../../discovery/discover-person.js'
import { receiveUnprovenMove } from '../../discovery/receive-move.js'
import type { ImportingUser } from '../owner.js'
import { type ArchiveOwner, isSameKey } from '../reading/archive-owner.js'

/** The state of the old account of an archive, as this pod knows it. */
export type IdentityState =
  /** The old account has the key of the archive. */
  | 'proven'
  /** The old account is unknown here, and its pod does not answer. */
  | 'unproven'
  /** The old account was deleted. */
  | 'closed'
  /** The old account has moved to this account before. */
  | 'moved_here'
  /** The old account is on this pod. */
  | 'local'
  /** The old account is this account. */
  | 'same'

export interface ArchiveIdentity {
  readonly state: IdentityState
  /** Undefined: this pod does not know the old account. */
  readonly personId: number | undefined
}

/** The old account of an archive, as its owner claims. */
export interface ClaimedIdentity extends Pick<ArchiveOwner, 'address' | 'publicKey'> {
  /**
   * Whether there is a later attempt, when the pod of the old account may answer. Until the last one, an account that cannot be examined
   * is unproven, also if an unproven move leads to another account: that move may be invented.
   */
  readonly hasLaterAttempt?: boolean
}

/** Finds out whose archive it is. Throws an `ArchiveError` if it belongs to another user or has moved to another account. */
export async function identifyArchive(
  services: Services,
  { address, publicKey, hasLaterAttempt = false }: ClaimedIdentity,
  user: ImportingUser,
): Promise<ArchiveIdentity> {
  const move = await findMoveOfPerson(services.db, address)
  const isMoveHere = Number(move?.newPersonId) === user.personId
  const isMoveElsewhere = move !== undefined && !isMoveHere
  if (isMoveElsewhere && move.isProven) throw movedElsewhere(address)
  const person = await findOldPerson(services, address)
  if (isMoveElsewhere && person === undefined && !hasLaterAttempt) throw movedElsewhere(address)
  if (person === undefined) return { state: isMoveHere ? 'moved_here' : 'unproven', personId: undefined }
  const isSame = person.id === user.personId
  if (!isSameKey(publicKey, person.publicKey)) {
    if (isSame) throw new ArchiveError('same_account', `The archive is of ${address} itself, but has another key.`)
    throw new ArchiveError('key_mismatch', `The key of the archive is not the key of ${address}.`)
  }
  if (isSame || move === undefined || move.isProven)
    return { state: isSame ? 'same' : stateOf(person, isMoveHere), personId: person.id }
  // The earlier move was imported before this pod knew the account. It counts if the key of the account has signed it.
  const isSigned = await receiveUnprovenMove(services, person)
  if (isSigned && isMoveElsewhere) throw movedElsewhere(address)
  return { state: stateOf(person, isSigned), personId: person.id }
}

function movedElsewhere(address: string): ArchiveError {
  return new ArchiveError('moved_elsewhere', `${address} has moved to another account.`)
}

function stateOf({ podId, closedAt }: Person, hasMoved: boolean): IdentityState {
  if (hasMoved) return 'moved_here'
  if (closedAt !== null) return 'closed'
  return podId === null ? 'local' : 'proven'
}

async function findOldPerson(services: Services, address: string): Promise<Person | undefined> {
  try {
    return await discoverPerson(services, address)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    return Person.byAddress(services.db, address)
  }
}

/** Posts and interactions are imported only as those of the account that has them on all other pods too. */
export function allowsContent(state: IdentityState, isMove: boolean): boolean {
  if (state === 'closed') return false
  return state === 'same' || state === 'moved_here' || isMove
}

/** Conversations are imported only for the proven owner of the archive. */
export function allowsConversations(state: IdentityState, isMove: boolean): boolean {
  return state !== 'unproven' && allowsContent(state, isMove)
}
