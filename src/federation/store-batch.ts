import type { Knex } from 'knex'
import { lockThings, type Thing, waitAndWake } from '../jobs/waiting.js'
import { inTransaction } from '../persistence/errors.js'
import type { Pod } from '../pod.js'
import type { Arrival, Sorted, Stored } from './batch.js'
import { followUp } from './follow-up.js'
import type { StorableEntity } from './storable.js'
import { storeReshares, storeStatusMessages } from './store-posts.js'

/** Stores any number of one kind; `now` bounds the times that other pods tell. */
type Store<Entity extends StorableEntity> = (
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<Entity>[],
  now: Date,
) => Promise<Stored<Entity>>

type Kind = StorableEntity['type']

/**
 * Everything that other pods may send us; a new entity does not compile until it has a line here. Stored from top to bottom:
 * parents before children, locks always in one direction.
 */
const kinds: { readonly [Type in Kind]: Store<Extract<StorableEntity, { type: Type }>> } = {
  status_message: storeStatusMessages,
  reshare: storeReshares,
}

/** One transaction for the whole batch, with all that must follow from it. */
export async function storeBatch(
  pod: Pod,
  arrivals: readonly Arrival<StorableEntity>[],
): Promise<Omit<Sorted<never>, 'ready'>> {
  if (arrivals.length === 0) return { waiting: [], wrong: [], over: [] }
  const wrong = await inTransaction(pod.db, async (transaction) => {
    await lockThings(transaction, arrivals.flatMap(lockedFor))
    const stored: Stored[] = []
    for (const kind of Object.keys(kinds) as Kind[]) {
      const ofKind = arrivals.filter(({ entity }) => entity.type === kind)
      const store = kinds[kind] as Store<StorableEntity> // the table pairs each kind with its function
      if (ofKind.length > 0) stored.push(await store(transaction, ofKind, pod.now()))
    }
    const records = stored.flatMap((some) => some.records)
    await followUp(pod, transaction, records)
    await waitAndWake(
      pod,
      transaction,
      [],
      records.flatMap(({ arrival }) => thingsIn(arrival)),
    )
    return stored.flatMap((some) => some.wrong)
  })
  return { waiting: [], wrong, over: [] }
}

/** Everything that somebody may wait for and that comes with this entity. */
function thingsIn(arrival: Arrival<StorableEntity>): Thing[] {
  const { entity } = arrival
  const photos = entity.type === 'status_message' ? entity.photos.map(({ guid }) => `photo:${guid}` as const) : []
  return [...lockedFor(arrival), ...photos]
}

/**
 * Photos are not locked: a stranger may put a hundred into each post of a batch, and the server has some thousand locks for
 * everybody. Who waits for one and misses it, within moments of its arrival, gets it when their time is over.
 */
function lockedFor({ entity }: Arrival<StorableEntity>): Thing[] {
  const poll = entity.type === 'status_message' ? entity.poll : undefined
  return [`post:${entity.guid}`, ...(poll === undefined ? [] : [`poll:${poll.guid}` as const])]
}
