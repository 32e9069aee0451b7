import { endsContentOrContact, isRelayable, type ReceivableEntity } from '../../protocol/entities/registry.js'
import { faultOfArrival } from '../../protocol/envelopes/sender-rules.js'
import type { IgnoredMessage, RejectedMessage, ResolvedArrival, StepResult } from './batch.js'
import type { Signer } from './find-signers.js'
import { listRetractionTargets, receivedType } from './received-entities.js'

/** Decides which entities their senders may send, from the resolved facts alone: no I/O. */
export function authorise(resolved: readonly ResolvedArrival[]): StepResult<ResolvedArrival> {
  const ready: ResolvedArrival[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of resolved) {
    const { message } = arrival
    const reason = reasonToIgnore(arrival)
    const fault = reason === undefined ? faultOf(arrival) : undefined
    if (reason !== undefined) ignored.push({ message, arrival, reason })
    else if (fault !== undefined) rejected.push({ message, arrival, ...fault })
    else ready.push(arrival)
  }
  return { ready, rejected, ignored, waiting: [] }
}

/** The same decision about one entity. */
export function isAuthorised(resolved: ResolvedArrival): boolean {
  return reasonToIgnore(resolved) === undefined && faultOf(resolved) === undefined
}

/** The reason to ignore an entity that may be valid; undefined: there is none. */
function reasonToIgnore({ entity, signer, author, isDeleted, isAuthorLocal }: ResolvedArrival): string | undefined {
  if (isIgnoredOfBlocked(entity, signer, author)) return `Moderated: the author ${entity.author} is blocked`
  const reason =
    reasonToIgnorePerson(signer, entity) ??
    (isRelayable(entity) && author ? reasonToIgnorePerson(author, entity) : undefined)
  if (reason !== undefined) return reason
  // A stored entity would be a repeat; a deleted one could be restored by any pod that has kept its envelope.
  if (isAuthorLocal) return `${entity.author} is a local account`
  // A moved account keeps its key and may sign its migration; all other entities of local accounts originate on this pod.
  if (signer.local && entity.type !== 'account_migration') return `${signer.address} is a local account`
  return isDeleted ? 'the entity or its parent was retracted before it arrived' : undefined
}

/** The author of the entity counts, also if another pod relays it. Interactions with local posts are rejected and answered instead. */
function isIgnoredOfBlocked(entity: ReceivableEntity, signer: Signer, author: Signer | undefined): boolean {
  const isBlocked = author === undefined ? signer.isPersonBlocked : author.isPersonBlocked
  return isBlocked && !endsContentOrContact(entity) && !isRelayable(entity)
}

function reasonToIgnorePerson({ address, blocked, closed }: Signer, entity: ReceivableEntity): string | undefined {
  if (blocked && !endsContentOrContact(entity)) return `the pod of ${address} is blocked`
  return closed ? `the account ${address} is closed` : undefined
}

function faultOf(arrival: ResolvedArrival): Pick<RejectedMessage, 'fault' | 'reason'> | undefined {
  const { entity, sender, signature, references, hasLostParts, recipient, author } = arrival
  const name = () => `the ${nameOf(entity)} by ${entity.author}`
  if (recipient?.isClosed)
    return { fault: 'RecipientClosed', reason: `${name()} is for ${recipient.address}, whose account is closed` }
  const fault = faultOfArrival({ entity, sender, signature, recipient: recipient?.address }, references)
  if (fault !== undefined) return { fault, reason: `${sender} must not send ${name()} in this way` }
  if (author?.isPersonBlocked && isRelayable(entity)) {
    return { fault: 'Moderated', reason: `the author ${entity.author} is blocked` }
  }
  if (!hasLostParts && receivedType(entity).isEmpty(entity))
    return { fault: 'ValidationError', reason: `${name()} is empty` }
  return undefined
}

function nameOf(entity: ReceivableEntity): string {
  const [target] = listRetractionTargets(entity)
  if (target !== undefined) return `${entity.type} of ${target.type} ${target.guid}`
  return 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
}
