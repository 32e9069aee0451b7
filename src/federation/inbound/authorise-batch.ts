import { isRelayable } from '../../protocol/entities/registry.js'
import { faultOfArrival } from '../../protocol/envelopes/sender-rules.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StepResult } from './batch.js'
import type { Signer } from './find-signers.js'
import type { Resolved } from './resolve-batch.js'
import type { StorableEntity } from './store/storable-entity.js'

/** Decides on what the steps before have found, and on nothing else: who may say this, and whether it may still be said. */
export function authoriseBatch(resolved: readonly Resolved[]): StepResult<Arrival<StorableEntity>> {
  const ready: Arrival<StorableEntity>[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of resolved) {
    const { message } = arrival
    const end = endOf(arrival)
    const fault = end === undefined ? faultOf(arrival) : undefined
    if (end !== undefined) ignored.push({ message, arrival, reason: end })
    else if (fault !== undefined) rejected.push({ message, arrival, ...fault })
    else ready.push(arrival)
  }
  return { ready, rejected, ignored, waiting: [] }
}

/** The same question about one. */
export function isAuthorised(resolved: Resolved): boolean {
  return endOf(resolved) === undefined && faultOf(resolved) === undefined
}

/** Why nothing is done about it, whatever it is. */
function endOf({ entity, signer, author, deleted, authorIsLocal }: Resolved): string | undefined {
  const endOfPerson = endBecauseOf(signer) ?? (isRelayable(entity) && author ? endBecauseOf(author) : undefined)
  if (endOfPerson !== undefined) return endOfPerson
  // Known here it is a repeat, unknown here it was deleted: whoever has our answer of old could bring it back.
  if (authorIsLocal) return `${entity.author} is a local account`
  // Who moves away takes the key along; everything else that is signed with it comes from this pod.
  if (signer.local && entity.type !== 'account_migration') return `${signer.address} is a local account`
  return deleted ? 'it, or what it stands under, was taken back before it came' : undefined
}

function endBecauseOf({ address, blocked, closed }: Signer): string | undefined {
  if (blocked) return `the pod of ${address} is blocked`
  return closed ? `${address} has left` : undefined
}

function faultOf(arrival: Resolved): Pick<RejectedMessage, 'fault' | 'reason'> | undefined {
  const { entity, sender, signature, references, hasLostParts, recipient } = arrival
  const name = () => `the ${nameOf(entity)} by ${entity.author}`
  if (recipient?.closed)
    return { fault: 'RecipientClosed', reason: `${name()} is for ${recipient.address}, who has left` }
  const fault = faultOfArrival({ entity, sender, signature, recipient: recipient?.address }, references)
  if (fault !== undefined) return { fault, reason: `${name()} must not come from ${sender} in this way` }
  if (!hasLostParts && isEmpty(entity)) return { fault: 'ValidationError', reason: `${name()} is empty` }
  return undefined
}

function nameOf(entity: StorableEntity): string {
  if (entity.type === 'retraction') return `retraction of ${entity.target_type} ${entity.target_guid}`
  return 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
}

function isEmpty(entity: StorableEntity): boolean {
  if (entity.type === 'comment') return entity.text.trim() === ''
  return entity.type === 'status_message' && entity.text.trim() === '' && entity.photos.length === 0
}
