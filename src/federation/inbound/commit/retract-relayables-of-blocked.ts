import type { Knex } from 'knex'
import { storeMessage } from '../../../domain/outbound/outgoing-messages.js'
import { findPostReferences } from '../../../persistence/inbound/post-references.js'
import { Person } from '../../../persistence/models/person.js'
import { DELIVERY_PRIORITY } from '../../../persistence/outbound/delivery-priority.js'
import { ENTITY_TYPES, isStoredRelayable, type StoredRelayable } from '../../../protocol/entities/registry.js'
import type { ProtocolFault } from '../../../protocol/errors.js'
import type { Services } from '../../../services/services.js'
import type { RejectedMessage } from '../batch.js'
import { groupGuidsByKind, listParents } from '../receiving-rules.js'

/** The author of the post blocks the author, or moderators do. */
const ANSWERED: ReadonlySet<ProtocolFault> = new Set(['AuthorIgnored', 'Moderated'])

/**
 * Sends a retraction to each author whose relayable was rejected because the local post author or this pod blocks them. No other pod
 * has received the relayable.
 */
export async function retractRelayablesOfBlocked(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const relayables = rejected.flatMap(({ fault, message }) => (ANSWERED.has(fault) ? relayableIn(message) : []))
  if (relayables.length === 0) return
  const { threadPosts } = await findPostReferences(transaction, groupGuidsByKind(relayables.flatMap(listParents)))
  const authors = await Person.byAddresses(
    transaction,
    relayables.map(({ author }) => author),
  )
  for (const relayable of relayables) {
    const { type, guid, author: address } = relayable
    const [parent] = listParents(relayable)
    const threadPost = threadPosts.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
    const author = authors.find((person) => person.address === address)
    if (threadPost === undefined || !threadPost.isLocal || author === undefined) continue
    const [name] = ENTITY_TYPES[type].retractedAs
    const entity = { type: 'retraction', author: address, target_guid: guid, target_type: name } as const
    const message = {
      record: type,
      guid,
      verb: 'retract',
      senderId: threadPost.authorId,
      public: threadPost.isPublic,
      entity,
      priority: DELIVERY_PRIORITY.relay,
    } as const
    await storeMessage(services, transaction, message, { kind: 'people', personIds: [author.id] })
  }
}

function relayableIn(message: RejectedMessage['message']): StoredRelayable[] {
  const entity = message?.entity
  return entity !== undefined && isStoredRelayable(entity) ? [entity] : []
}
