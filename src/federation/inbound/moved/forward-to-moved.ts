import type { Knex } from 'knex'
import { forwardEnvelopeJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/enqueue-jobs.js'
import { type ForwardedRelayable, recordForwarded } from '../../../persistence/inbound/forwarded-relayables.js'
import { findPostReferences } from '../../../persistence/inbound/post-references.js'
import { findMovedFromHere, type MovedFromHere } from '../../../persistence/people/moved-people.js'
import { isStoredRelayable, type StoredRelayable } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import { answerWithClosingEntities } from '../answer-closed-accounts.js'
import type { RejectedMessage, VerifiedMessage } from '../batch.js'
import { INBOUND_LIMITS } from '../limits.js'
import { groupGuidsByKind, listParents } from '../receiving-rules.js'

interface ForwardedMessages {
  /** Messages for authors who have moved away, forwarded or not. */
  readonly late: readonly LateMessage[]
  /** Messages over the limit of a pod. */
  readonly unforwarded: number
}

/**
 * Forwards late comments, likes and votes under posts of authors who have moved away: each once, a limited number per pod and day. The new
 * pod relays them; a private one is encrypted for the new identity. Only messages signed by their own author count: a relayed one may arrive
 * again.
 */
export async function forwardToMovedAuthors(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<ForwardedMessages> {
  const late = await findLateMessages(transaction, rejected.flatMap(lateRelayable))
  const { forwardable, leftOut } = await recordForwarded(
    transaction,
    late.map(({ message }) => message.entity),
    INBOUND_LIMITS.forwardedOfPodADay,
  )
  const unsent = new Set(forwardable.map(toText))
  const forwarded = late.filter(({ message }) => unsent.delete(toText(message.entity)))
  await enqueueJobsOfKind(services, transaction, forwardEnvelopeJob, forwarded.map(toForwardedEnvelope))
  return { late, unforwarded: leftOut }
}

/** Sends the migration to authors of public late messages. Those of private ones are answered like all who write to a closed account. */
export async function answerAuthorsOfLateMessages(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  late: readonly LateMessage[],
): Promise<void> {
  await answerWithClosingEntities(
    services,
    transaction,
    late.flatMap(({ message: { recipient, sender }, move: { oldId, guid, address } }) =>
      recipient === undefined ? [{ account: { personId: oldId, guid, address }, sender }] : [],
    ),
  )
}

interface LateMessage {
  readonly message: VerifiedMessage<StoredRelayable>
  readonly move: MovedFromHere
}

/** The messages whose post belongs to a person who has moved away from this pod, with the move. */
async function findLateMessages(
  transaction: Knex.Transaction,
  messages: readonly VerifiedMessage<StoredRelayable>[],
): Promise<readonly LateMessage[]> {
  if (messages.length === 0) return []
  const { threadPosts } = await findPostReferences(
    transaction,
    groupGuidsByKind(messages.flatMap(({ entity }) => listParents(entity))),
  )
  const moves = await findMovedFromHere(
    transaction,
    threadPosts.filter(({ isLocal }) => !isLocal).map(({ authorId }) => authorId),
    INBOUND_LIMITS.forwardedDays,
  )
  return messages.flatMap((message) => {
    const { entity, recipient } = message
    const [parent] = listParents(entity)
    const threadPost = threadPosts.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
    const move = moves.find(
      ({ newestId, oldId }) =>
        newestId === threadPost?.authorId && (recipient === undefined || recipient.personId === oldId),
    )
    return move === undefined || threadPost?.isPublic !== (recipient === undefined) ? [] : [{ message, move }]
  })
}

function toForwardedEnvelope({ message: { inbound, recipient }, move: { oldId, newestId, podId } }: LateMessage) {
  return { envelope: inbound.envelope, podId, ...(recipient && { encryptedFor: { oldId, newestId } }) }
}

function toText({ author, guid }: ForwardedRelayable): string {
  return `${guid} ${author}`
}

function lateRelayable({ fault, message }: RejectedMessage): VerifiedMessage<StoredRelayable>[] {
  if (message === undefined) return []
  const { inbound, entity, sender, recipient } = message
  const isLate = fault === (recipient === undefined ? 'InvalidSender' : 'RecipientClosed')
  return isLate && inbound.fetchRequest === undefined && isStoredRelayable(entity) && entity.author === sender
    ? [{ ...message, entity }]
    : []
}
