import type { Knex } from 'knex'
import { storePersonalMessages } from '../../../domain/outbound/outgoing-messages.js'
import { findPostReferences, type ReferencedPost } from '../../../persistence/inbound/post-references.js'
import { Person } from '../../../persistence/models/person.js'
import { DELIVERY_PRIORITY } from '../../../persistence/outbound/delivery-priority.js'
import { planRetractionsToBlocked } from '../../../persistence/outbound/plan-retractions-to-blocked.js'
import { ENTITY_TYPES, isStoredRelayable, type StoredRelayable } from '../../../protocol/entities/registry.js'
import type { ProtocolFault } from '../../../protocol/errors.js'
import type { Services } from '../../../services/services.js'
import type { RejectedMessage } from '../batch.js'
import { groupGuidsByKind, listParents } from '../receiving-rules.js'

/** Faults that are answered with a retraction: the author of the post or a moderator blocks the author. */
const FAULTS_OF_BLOCKED_AUTHORS: ReadonlySet<ProtocolFault> = new Set(['AuthorIgnored', 'Moderated'])

/**
 * Sends a retraction to each author whose relayable was rejected because the local post author or this pod blocks them. No other pod
 * has received the relayable. The number of statements does not depend on the number of relayables.
 *
 * It cannot deadlock with other transactions. Messages of this kind are written by one statement in the order of record and guid; the
 * answers to closed accounts, which the same transaction may write before, are of other records. A relayable that another transaction is
 * retracting is still stored for this one, and is left out. No row of a pod is locked.
 */
export async function retractRelayablesOfBlocked(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  rejected: readonly RejectedMessage[],
): Promise<void> {
  const relayables = rejected.flatMap(({ fault, message }) =>
    FAULTS_OF_BLOCKED_AUTHORS.has(fault) ? relayableIn(message) : [],
  )
  if (relayables.length === 0) return
  const { threadPosts } = await findPostReferences(transaction, groupGuidsByKind(relayables.flatMap(listParents)))
  const authors = await Person.byAddresses(
    transaction,
    relayables.map(({ author }) => author),
  )
  const retractions = firstOfEachRecord(
    relayables.flatMap((relayable) => retractionOf(relayable, threadPosts, authors)),
  )
  const planned = new Set((await planRetractionsToBlocked(transaction, retractions)).map(keyOf))
  await storePersonalMessages(
    services,
    transaction,
    retractions.filter((retraction) => planned.has(keyOf(retraction))),
  )
}

function relayableIn(message: RejectedMessage['message']): StoredRelayable[] {
  const entity = message?.entity
  return entity !== undefined && isStoredRelayable(entity) ? [entity] : []
}

/** The retraction of a relayable under a local post, for its author: none or one. */
function retractionOf(
  relayable: StoredRelayable,
  threadPosts: readonly ReferencedPost[],
  authors: readonly Pick<Person, 'id' | 'address'>[],
) {
  const { type, guid, author: address } = relayable
  const [parent] = listParents(relayable)
  const threadPost = threadPosts.find((post) => post.kind === parent?.kind && post.guid === parent.guid)
  const author = authors.find((person) => person.address === address)
  if (threadPost === undefined || !threadPost.isLocal || author === undefined) return []
  const [name] = ENTITY_TYPES[type].retractedAs
  const retraction = {
    record: type,
    guid,
    verb: 'retract',
    senderId: threadPost.authorId,
    public: threadPost.isPublic,
    entity: { type: 'retraction', author: address, target_guid: guid, target_type: name },
    priority: DELIVERY_PRIORITY.relay,
    personId: author.id,
  } as const
  return [retraction]
}

type Retraction = ReturnType<typeof retractionOf>[number]

/** One statement cannot write a message twice. */
function firstOfEachRecord(retractions: readonly Retraction[]): readonly Retraction[] {
  return [...new Map(retractions.toReversed().map((retraction) => [keyOf(retraction), retraction])).values()]
}

function keyOf({ record, guid }: { readonly record: string; readonly guid: string }): string {
  return `${record} ${guid}`
}
