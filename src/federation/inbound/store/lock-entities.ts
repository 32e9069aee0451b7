import type { Knex } from 'knex'
import type { EntityKey } from '../../../jobs/waiting/entity-key.js'
import { lockEntityKeys } from '../../../jobs/waiting/lock-entity-keys.js'
import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Arrival, WaitingMessage } from '../batch.js'
import { listParents, retractedKey } from '../entity-references.js'

/**
 * Locks what a batch stores, retracts or waits for exclusively, and the parents of its entities shared: other transactions may
 * add to the same parent, but not delete it. Returns whether pods or people were blocked in the last minute.
 */
export async function lockEntities(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ReceivableEntity>[],
  waiting: readonly WaitingMessage[],
): Promise<{ readonly hasNewBlocks: boolean }> {
  const exclusive = [...arrivals.flatMap(changedKeys), ...waiting.map(({ waitsFor }) => waitsFor)]
  return lockEntityKeys(transaction, exclusive, arrivals.flatMap(parentKeys))
}

/** Everything in this entity that a message may wait for. */
export function providedKeys(arrival: Arrival<ReceivableEntity>): EntityKey[] {
  const { entity } = arrival
  const photos = entity.type === 'status_message' ? entity.photos.map(({ guid }) => `photo:${guid}` as const) : []
  return [...storedKeys(arrival), ...photos]
}

function changedKeys(arrival: Arrival<ReceivableEntity>): EntityKey[] {
  const { entity } = arrival
  const target = entity.type === 'retraction' ? retractedKey(entity) : undefined
  return target === undefined ? storedKeys(arrival) : [...storedKeys(arrival), target]
}

function parentKeys({ entity }: Arrival<ReceivableEntity>): EntityKey[] {
  return listParents(entity).map(({ kind, guid }) => `${kind}:${guid}` as const)
}

/**
 * Photos of a post are not locked: each post of a batch may carry a hundred, and the lock table of the server has some thousand
 * places for all sessions. A message that waits for such a photo and misses its arrival resumes when its waiting time is over.
 */
function storedKeys({ entity }: Arrival<ReceivableEntity>): EntityKey[] {
  switch (entity.type) {
    case 'status_message':
      return [`post:${entity.guid}`, ...(entity.poll === undefined ? [] : [`poll:${entity.poll.guid}` as const])]
    case 'reshare':
      return [`post:${entity.guid}`]
    case 'photo':
    case 'comment':
    case 'like':
    case 'poll_participation':
    case 'participation':
    case 'conversation':
    case 'message':
      return [`${entity.type}:${entity.guid}`]
    // No message waits for an entity that only changes another one.
    case 'retraction':
    case 'profile':
    case 'contact':
    case 'account_deletion':
    case 'account_migration':
      return []
  }
}
