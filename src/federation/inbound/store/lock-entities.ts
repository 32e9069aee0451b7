import type { Knex } from 'knex'
import type { EntityKey } from '../../../jobs/waiting/entity-key.js'
import { lockEntityKeys } from '../../../jobs/waiting/lock-entity-keys.js'
import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { VerifiedMessage, WaitingMessage } from '../batch.js'
import {
  keyOfTarget,
  listParents,
  listParts,
  listRetractionTargets,
  type PartReference,
  recordKeysOf,
} from '../receiving-rules.js'

/**
 * Locks what a batch stores, retracts or waits for exclusively, and the parents of its entities shared: other transactions may
 * add to the same parent, but not delete it. Returns whether pods or people were blocked in the last minute.
 */
export async function lockEntities(
  transaction: Knex.Transaction,
  messages: readonly VerifiedMessage<ReceivableEntity>[],
  waiting: readonly WaitingMessage[],
): Promise<{ readonly hasNewBlocks: boolean }> {
  const exclusive = [...messages.flatMap(changedKeys), ...waiting.map(({ waitsFor }) => waitsFor)]
  return lockEntityKeys(transaction, exclusive, messages.flatMap(parentKeys))
}

/** Everything in this entity that a message may wait for. */
export function providedKeys({ entity }: VerifiedMessage<ReceivableEntity>): EntityKey[] {
  return [...recordKeysOf(entity), ...listParts(entity).map(keyOf)]
}

/**
 * Photos of a post are not locked: each post of a batch may carry a hundred, and the lock table of the server has some thousand
 * places for all sessions. A message that waits for such a photo and misses its arrival resumes when its waiting time is over.
 */
function changedKeys({ entity }: VerifiedMessage<ReceivableEntity>): EntityKey[] {
  const parts = listParts(entity).filter(({ type }) => type !== 'photo')
  const targets = listRetractionTargets(entity).flatMap((target) => keyOfTarget(target) ?? [])
  return [...recordKeysOf(entity), ...parts.map(keyOf), ...targets]
}

function parentKeys({ entity }: VerifiedMessage<ReceivableEntity>): EntityKey[] {
  return listParents(entity).map(({ kind, guid }) => `${kind}:${guid}` as const)
}

function keyOf({ type, guid }: PartReference): EntityKey {
  return `${type}:${guid}`
}
