import type { Knex } from 'knex'
import { type Relay, storeRelays } from '../../domain/outbound/outgoing-messages.js'
import type { RelayedRecords } from '../../jobs/definitions.js'
import type { JobGroup } from '../../jobs/outbox/job-groups.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import { lockRelayedRecords } from '../../persistence/outbound/lock-dispatched.js'
import { RELAYABLE_KINDS, type RelayableKind } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'
import { relayableEntities } from './relayable-entities.js'

/**
 * Relays interactions of remote people with local posts; the author of the post signs the envelopes. The number of statements does
 * not depend on the number of relayables. Deleted relayables are left out.
 */
export async function dispatchRelays(services: Services, group: JobGroup<RelayedRecords>): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const relays = (await group.take(transaction)).flatMap((data) => data.relays)
    await relayRecords(services, transaction, relays)
  })
}

async function relayRecords(
  services: Services,
  transaction: Knex.Transaction,
  records: RelayedRecords['relays'],
): Promise<void> {
  const relays: Relay[] = []
  for (const kind of RELAYABLE_KINDS) {
    const guids = records.flatMap(({ record, guid }) => (record === kind ? [guid] : []))
    relays.push(...(await relaysOfKind(transaction, kind, guids)))
  }
  await storeRelays(services, transaction, relays)
}

async function relaysOfKind(
  transaction: Knex.Transaction,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<readonly Relay[]> {
  if (guids.length === 0) return []
  const lockedRecords = await lockRelayedRecords(transaction, kind, guids)
  const relayables = await relayableEntities({ db: transaction }, kind, guids)
  const entities = new Map(relayables.map((entity) => [entity.guid, entity]))
  return lockedRecords.flatMap(({ guid, id, threadPost, author, trace }) => {
    const entity = entities.get(guid)
    if (entity === undefined || !threadPost.author.isLocal || author.isLocal) return []
    const relay: Relay = {
      record: kind,
      guid,
      verb: 'create',
      senderId: threadPost.author.id,
      public: threadPost.isPublic,
      entity,
      priority: DELIVERY_PRIORITY.relay,
      postId: threadPost.id,
      commentId: kind === 'comment' ? id : null,
      authorId: author.id,
      trace,
    }
    return [relay]
  })
}
