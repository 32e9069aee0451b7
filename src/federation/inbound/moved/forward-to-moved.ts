import type { Knex } from 'knex'
import { forwardEnvelopeJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/enqueue-jobs.js'
import { findPostReferences } from '../../../persistence/inbound/post-references.js'
import { findMovedFromHere } from '../../../persistence/people/moved-people.js'
import { isStoredRelayable, type StoredRelayable } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import { answerWithClosingEntity } from '../answer-closed-accounts.js'
import type { RejectedMessage, VerifiedMessage } from '../batch.js'
import { groupGuidsByKind, listParents } from '../receiving-rules.js'

/** Time for which a pod may not know that the author of a post has moved. */
const FORWARDED_DAYS = 400

/**
 * A comment, like or vote under a post whose author has moved away from this pod is forwarded as it is to the new pod, which relays it;
 * a private one is encrypted for the new identity. The pod of its author gets the migration. Only authors of what they send are served:
 * anything else may be sent twice.
 */
export async function forwardToMovedAuthors(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const late = rejected.flatMap(lateRelayable)
  if (late.length === 0) return
  const { threadPosts } = await findPostReferences(
    transaction,
    groupGuidsByKind(late.flatMap(({ entity }) => listParents(entity))),
  )
  const moves = await findMovedFromHere(
    transaction,
    threadPosts.filter(({ isLocal }) => !isLocal).map(({ authorId }) => authorId),
    FORWARDED_DAYS,
  )
  for (const { entity, sender, inbound, recipient } of late) {
    const [parent] = listParents(entity)
    const threadPost = threadPosts.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
    const move = moves.find(
      ({ newestId, oldId }) =>
        newestId === threadPost?.authorId && (recipient === undefined || recipient.personId === oldId),
    )
    if (move === undefined || threadPost?.isPublic !== (recipient === undefined)) continue
    const { oldId, newestId, podId } = move
    const forwardedEnvelope = {
      envelope: inbound.envelope,
      podId,
      ...(recipient && { encryptedFor: { oldId, newestId } }),
    }
    await enqueueJobsOfKind(services, transaction, forwardEnvelopeJob, [forwardedEnvelope])
    if (recipient !== undefined) continue // answered as every sender to a closed account
    const { guid, address } = move
    await answerWithClosingEntity(services, transaction, { personId: oldId, guid, address }, [sender])
  }
}

function lateRelayable({ fault, message }: RejectedMessage): VerifiedMessage<StoredRelayable>[] {
  if (message === undefined) return []
  const { inbound, entity, sender, recipient } = message
  const isLate = fault === (recipient === undefined ? 'InvalidSender' : 'RecipientClosed')
  return isLate && inbound.fetchRequest === undefined && isStoredRelayable(entity) && entity.author === sender
    ? [{ ...message, entity }]
    : []
}
