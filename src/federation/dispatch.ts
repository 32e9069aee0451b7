import { sendOut } from '../domain/outgoing.js'
import type { OutgoingRecord } from '../jobs/definitions.js'
import type { Work } from '../jobs/outbox.js'
import { LOOKUP_LIMITS } from '../limits.js'
import { inTransaction } from '../persistence/errors.js'
import type { Pod } from '../pod.js'
import type { Entity } from '../protocol/entities/registry.js'
import { lookForNamed } from './late-mentions.js'
import { lookForLinked, textOf } from './linked.js'
import { outgoingOf } from './outgoing-of.js'
import { isElsewhere } from './pod-place.js'

/** Writes one envelope for a record and a delivery for everybody who has to have it; a job that comes twice writes nothing. */
export async function dispatch(pod: Pod, work: Work & { readonly data: OutgoingRecord }): Promise<void> {
  await inTransaction(pod.db, async (transaction) => {
    await work.finish(transaction)
    const outgoing = await outgoingOf(pod, transaction, work.data)
    if (outgoing === undefined) return
    await lookForNamed(pod, transaction, outgoing)
    await lookForLinked(pod, transaction, [
      { text: ownTextOf(pod, outgoing.message.entity), depth: 0, fetchesLeft: LOOKUP_LIMITS.fetchesOfMessage },
    ])
    await sendOut(pod, transaction, outgoing.message, outgoing.audience)
  })
}

/** What is only passed on was looked at when it came. */
function ownTextOf(pod: Pod, entity: Entity): string {
  return 'author' in entity && isElsewhere(pod, entity.author) ? '' : textOf(entity)
}
