import type { Knex } from 'knex'
import { enqueueMessage } from '../../domain/outbound/outgoing-messages.js'
import { findPostReferences } from '../../persistence/inbound/post-references.js'
import { Person } from '../../persistence/models/person.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import type { Pod } from '../../pod/pod.js'
import { ENTITY_TYPES, isStoredRelayable, type StoredRelayable } from '../../protocol/entities/registry.js'
import type { ProtocolFault } from '../../protocol/errors.js'
import type { RejectedMessage } from './batch.js'
import { groupGuidsByKind, listParents } from './received-entities.js'

/** The author of the post blocks the author, or moderators do. */
const ANSWERED: ReadonlySet<ProtocolFault> = new Set(['AuthorIgnored', 'Moderated'])

/**
 * Sends a retraction to each author whose relayable was rejected because the local post author or this pod blocks them. No other pod
 * has received the relayable.
 */
export async function retractIgnoredRelayables(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const ignored = rejected.flatMap(({ fault, arrival }) => (ANSWERED.has(fault) ? relayableIn(arrival) : []))
  if (ignored.length === 0) return
  const { roots } = await findPostReferences(transaction, groupGuidsByKind(ignored.flatMap(listParents)))
  const authors = await Person.byAddresses(
    transaction,
    ignored.map(({ author }) => author),
  )
  for (const relayable of ignored) {
    const { type, guid, author: address } = relayable
    const [parent] = listParents(relayable)
    const root = roots.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
    const author = authors.find((person) => person.address === address)
    if (root === undefined || !root.local || author === undefined) continue
    const [name] = ENTITY_TYPES[type].retractedAs
    const entity = { type: 'retraction', author: address, target_guid: guid, target_type: name } as const
    const message = {
      record: type,
      guid,
      verb: 'retract',
      senderId: root.authorId,
      public: root.public,
      entity,
      priority: DELIVERY_PRIORITY.relay,
    } as const
    await enqueueMessage(pod, transaction, message, { of: 'people', personIds: [author.id] })
  }
}

function relayableIn(arrival: RejectedMessage['arrival']): StoredRelayable[] {
  const entity = arrival?.entity
  return entity !== undefined && isStoredRelayable(entity) ? [entity] : []
}
