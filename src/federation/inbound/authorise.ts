import { endsContentOrContact, isRelayable, type ReceivableEntity } from '../../protocol/entities/registry.js'
import { findSenderFault } from '../../protocol/envelopes/sender-rules.js'
import type { IgnoredMessage, RejectedMessage, ResolvedMessage, StepResult, StorableMessage } from './batch.js'
import type { Signer } from './find-signers.js'
import { listRetractionTargets, receivingRulesOf } from './receiving-rules.js'

/** Decides which entities their senders may send, from the resolved message alone: no I/O. */
export function authorise(resolved: readonly ResolvedMessage[]): StepResult<ResolvedMessage> {
  const ready: ResolvedMessage[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const message of resolved) {
    const { inbound } = message
    const cause = findIgnoreCause(message)
    const fault = cause === undefined ? findFault(message) : undefined
    const ignoreCause = cause ?? (fault && ignoreCauseOfFault(message, fault))
    if (ignoreCause !== undefined) ignored.push({ inbound, message, ...ignoreCause })
    else if (fault !== undefined) rejected.push({ inbound, message, ...fault })
    else ready.push(message)
  }
  return { ready, rejected, ignored, waiting: [] }
}

/** Decides about one entity as `authorise` does. */
export function isAuthorised(resolved: ResolvedMessage): boolean {
  return findIgnoreCause(resolved) === undefined && findFault(resolved) === undefined
}

/** Why a message is ignored. */
type IgnoreCause = Pick<IgnoredMessage, 'fault' | 'reason'>

/** Finds the first cause to ignore an entity that may be valid; undefined: none. */
function findIgnoreCause(message: ResolvedMessage): IgnoreCause | undefined {
  const { entity, signer, author } = message
  if (isIgnoredAsAuthorBlocked(entity, signer, author)) {
    return { fault: 'Moderated', reason: blockedAuthorReason(entity.author) }
  }
  const reason = ignoreReasonOf(message)
  return reason === undefined ? undefined : { reason }
}

/** Invalid messages of blocked signers are ignored and counted instead of rejected: only valid interactions are answered with a retraction. */
function ignoreCauseOfFault(
  { signer: { isPodBlocked, isPersonBlocked }, sender }: ResolvedMessage,
  { fault, reason }: Pick<RejectedMessage, 'fault' | 'reason'>,
): IgnoreCause | undefined {
  if (fault === 'Moderated' || !(isPodBlocked || isPersonBlocked)) return undefined
  return { fault: 'Moderated', reason: `the sender ${sender} is blocked, and ${reason}` }
}

/** The reason of messages without an effect because a moderator has blocked the author. */
export function blockedAuthorReason(address: string): string {
  return `the author ${address} is blocked`
}

function ignoreReasonOf(message: ResolvedMessage): string | undefined {
  const { entity, signer, author, isDeleted, isAuthorLocal } = message
  const reason =
    ignoreReasonOfPerson(signer, message) ??
    (isRelayable(entity) && author ? ignoreReasonOfPerson(author, message) : undefined)
  if (reason !== undefined) return reason
  // Stored entities of local authors need no second copy, and a pod that has kept an old envelope must not restore a deleted one.
  if (isAuthorLocal) return `${entity.author} is a local account`
  // A moved account keeps its key and may sign its migration; all other entities of local accounts originate on this pod.
  if (signer.isLocal && entity.type !== 'account_migration') return `${signer.address} is a local account`
  return isDeleted ? 'the entity or its parent was retracted before it arrived' : undefined
}

/** The author of the entity counts, even if another pod relays it. Interactions with local posts are rejected and answered instead. */
function isIgnoredAsAuthorBlocked(entity: ReceivableEntity, signer: Signer, author: Signer | undefined): boolean {
  const isBlocked = author === undefined ? signer.isPersonBlocked : author.isPersonBlocked
  return isBlocked && !endsContentOrContact(entity) && !isRelayable(entity)
}

function ignoreReasonOfPerson(
  { address, isPodBlocked, isClosed }: Signer,
  message: ResolvedMessage,
): string | undefined {
  const isProcessed = endsContentOrContact(message.entity) || isInteractionWithLocalPost(message)
  if (isPodBlocked && !isProcessed) return `the pod of ${address} is blocked`
  return isClosed ? `the account ${address} is closed` : undefined
}

/** A comment, like or vote below a local post. From a blocked person or pod it is rejected, and answered with a retraction. */
export function isInteractionWithLocalPost({ entity, isParentLocal }: StorableMessage): boolean {
  return isParentLocal && isRelayable(entity)
}

function findFault(message: ResolvedMessage): Pick<RejectedMessage, 'fault' | 'reason'> | undefined {
  const { entity, sender, signature, references, hasLostParts, recipient, author } = message
  const name = () => `the ${nameOf(entity)} by ${entity.author}`
  if (recipient?.isClosed)
    return { fault: 'RecipientClosed', reason: `${name()} is for ${recipient.address}, whose account is closed` }
  const fault = findSenderFault({ entity, sender, signature, recipient: recipient?.address }, references)
  if (fault !== undefined) return { fault, reason: `${sender} must not send ${name()} in this way` }
  const isBlocked = author?.isPersonBlocked || (author?.isPodBlocked && isInteractionWithLocalPost(message))
  if (isBlocked && isRelayable(entity)) return { fault: 'Moderated', reason: blockedAuthorReason(entity.author) }
  if (!hasLostParts && receivingRulesOf(entity).isEmpty(entity))
    return { fault: 'ValidationError', reason: `${name()} is empty` }
  return undefined
}

function nameOf(entity: ReceivableEntity): string {
  const [target] = listRetractionTargets(entity)
  if (target !== undefined) return `${entity.type} of ${target.type} ${target.guid}`
  return 'guid' in entity ? `${entity.type} ${entity.guid}` : entity.type
}
