import type { Knex } from 'knex'
import { forwardEnvelopeJob } from '../../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../../jobs/outbox/outbox.js'
import { findPostReferences } from '../../../persistence/inbound/post-references.js'
import { findMovedFromHere } from '../../../persistence/people/moved-people.js'
import type { Pod } from '../../../pod/pod.js'
import { isStoredRelayable, type StoredRelayable } from '../../../protocol/entities/registry.js'
import { answerWithClosingEntity } from '../answer-closed-accounts.js'
import type { Arrival, RejectedMessage } from '../batch.js'
import { groupGuidsByKind, listParents } from '../received-entities.js'

/** For so long a pod may not know that the author of a post has moved away. */
const FORWARDED_DAYS = 400

/**
 * A comment, like or vote under a post whose author has moved away from this pod is forwarded as it is to the new pod, which relays it;
 * a private one is encrypted for the new identity. The pod of its author gets the migration. Only authors of what they send are served:
 * anything else may be sent twice.
 */
export async function forwardToMovedAuthors(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const late = rejected.flatMap(lateRelayable)
  if (late.length === 0) return
  const { roots } = await findPostReferences(
    transaction,
    groupGuidsByKind(late.flatMap(({ entity }) => listParents(entity))),
  )
  const moves = await findMovedFromHere(
    transaction,
    roots.filter(({ local }) => !local).map(({ authorId }) => authorId),
    FORWARDED_DAYS,
  )
  for (const { entity, sender, message, recipient } of late) {
    const [parent] = listParents(entity)
    const root = roots.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
    const move = moves.find(
      ({ newestId, oldId }) => newestId === root?.authorId && (recipient === undefined || recipient.personId === oldId),
    )
    if (move === undefined || root?.public !== (recipient === undefined)) continue
    const { oldId, newestId, podId } = move
    const forwarded = { envelope: message.envelope, podId, ...(recipient && { encryptedFor: { oldId, newestId } }) }
    await enqueueJobsOfKind(pod, transaction, forwardEnvelopeJob, [forwarded])
    if (recipient !== undefined) continue // answered as every sender to a closed account
    const { guid, address } = move
    await answerWithClosingEntity(pod, transaction, { personId: oldId, guid, address }, [sender])
  }
}

function lateRelayable({ fault, arrival }: RejectedMessage): Arrival<StoredRelayable>[] {
  if (arrival === undefined) return []
  const { message, entity, sender, recipient } = arrival
  const isLate = fault === (recipient === undefined ? 'InvalidSender' : 'RecipientClosed')
  return isLate && message.wanted === undefined && isStoredRelayable(entity) && entity.author === sender
    ? [{ ...arrival, entity }]
    : []
}
