import type { Knex } from 'knex'
import { enqueueRelays, type Relay } from '../../domain/outbound/outgoing-messages.js'
import type { RelayedRecords } from '../../jobs/definitions.js'
import type { JobGroup } from '../../jobs/outbox/outbox.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import { lockRelayedRecords } from '../../persistence/outbound/lock-dispatched.js'
import type { Pod } from '../../pod/pod.js'
import { RELAYABLE_KINDS, type RelayableKind } from '../../protocol/entities/registry.js'
import { relayableEntities } from './relayable-entities.js'

/**
 * Relays interactions of remote people with local posts; the author of the post signs the envelopes. The number of statements does
 * not depend on the number of relayables. Deleted relayables are left out.
 */
export async function dispatchRelays(pod: Pod, group: JobGroup<RelayedRecords>): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    const relays = (await group.take(transaction)).flatMap((data) => data.relays)
    await relayRecords(pod, transaction, relays)
  })
}

async function relayRecords(pod: Pod, transaction: Knex.Transaction, records: RelayedRecords['relays']): Promise<void> {
  const relays: Relay[] = []
  for (const kind of RELAYABLE_KINDS) {
    const guids = records.flatMap(({ record, guid }) => (record === kind ? [guid] : []))
    relays.push(...(await relaysOfKind(transaction, kind, guids)))
  }
  await enqueueRelays(pod, transaction, relays)
}

async function relaysOfKind(
  transaction: Knex.Transaction,
  kind: RelayableKind,
  guids: readonly string[],
): Promise<readonly Relay[]> {
  if (guids.length === 0) return []
  const locked = await lockRelayedRecords(transaction, kind, guids)
  const relayables = await relayableEntities({ db: transaction }, kind, guids)
  const entities = new Map(relayables.map((entity) => [entity.guid, entity]))
  return locked.flatMap(({ guid, id, root, author, trace }) => {
    const entity = entities.get(guid)
    if (entity === undefined || !root.author.isLocal || author.isLocal) return []
    const relay: Relay = {
      record: kind,
      guid,
      verb: 'create',
      senderId: root.author.id,
      public: root.public,
      entity,
      priority: DELIVERY_PRIORITY.relay,
      postId: root.id,
      commentId: kind === 'comment' ? id : null,
      authorId: author.id,
      trace,
    }
    return [relay]
  })
}
