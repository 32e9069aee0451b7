import type { Knex } from 'knex'
import { lockThings, type Thing } from '../../../jobs/waiting/waiting-messages.js'
import type { Arrival, WaitingMessage } from '../batch.js'
import { parentsOf, retractedThing } from '../entity-references.js'
import type { StorableEntity } from './storable-entity.js'

/**
 * Locks what a batch stores, retracts or waits for exclusively, and the parents of its entities shared: other transactions may
 * add to the same parent, but not delete it.
 */
export async function lockEntities(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<StorableEntity>[],
  waiting: readonly WaitingMessage[],
): Promise<void> {
  const exclusive = [...arrivals.flatMap(changedThings), ...waiting.map(({ waitsFor }) => waitsFor)]
  await lockThings(transaction, exclusive, arrivals.flatMap(parentThings))
}

/** Everything in this entity that a message may wait for. */
export function providedThings(arrival: Arrival<StorableEntity>): Thing[] {
  const { entity } = arrival
  const photos = entity.type === 'status_message' ? entity.photos.map(({ guid }) => `photo:${guid}` as const) : []
  return [...storedThings(arrival), ...photos]
}

function changedThings(arrival: Arrival<StorableEntity>): Thing[] {
  const { entity } = arrival
  const target = entity.type === 'retraction' ? retractedThing(entity) : undefined
  return target === undefined ? storedThings(arrival) : [...storedThings(arrival), target]
}

function parentThings({ entity }: Arrival<StorableEntity>): Thing[] {
  return parentsOf(entity).map(({ kind, guid }) => `${kind}:${guid}` as const)
}

/**
 * Photos of a post are not locked: each post of a batch may carry a hundred, and the lock table of the server has some thousand
 * places for all sessions. A message that waits for such a photo and misses its arrival resumes when its waiting time is over.
 */
function storedThings({ entity }: Arrival<StorableEntity>): Thing[] {
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
    default:
      return [] // no message waits for an entity that only changes another one
  }
}
