import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import type { Pod } from '../../pod/pod.js'
import { splitAddress } from '../../protocol/address.js'
import { type DataOf, discoverPersonJob, fetchEntityJob, type WantedEntity } from '../definitions.js'
import { enqueueJobsOfKind } from '../outbox/outbox.js'
import { type EntityKey, isFetchable, splitEntityKey, toFetchable } from './entity-key.js'
import { REFERENCE_LIMITS } from './limits.js'
import type { ParkedMessage } from './park-messages.js'

/** Milliseconds before a fetch: under load a parent is often in a batch that has not committed yet. */
const FETCH_DELAY_MS = 1_000

/** The fetches that a message may still cause after so many waits: each wait passes half of them on to the entity it waits for. */
export function fetchesLeftAfter(times: number): number {
  return Math.floor(REFERENCE_LIMITS.fetchesOfMessage / 2 ** times)
}

/** An entity and the host from which it is requested. */
export type FetchKey = `${EntityKey} ${string}`

/**
 * Enqueues one fetch for each entity and host, however many messages wait for it; returns the outbox rows of these jobs. A message that
 * names a pod without the entity does not delay messages that name another pod.
 */
export async function requestMissingEntities(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const wanted = new Map<FetchKey, ParkedMessage>()
  for (const message of waiting.toReversed()) {
    const name = buildFetchKey(message)
    if (name !== undefined) wanted.set(name, message)
  }
  if (wanted.size === 0) return new Map()
  const requested = await findRequested(transaction, [...wanted.values()])
  const people = new Map<FetchKey, DataOf<typeof discoverPersonJob>>()
  const entities = new Map<FetchKey, WantedEntity>()
  for (const [name, { waitsFor, fetchFrom = '', fallbackFetchFrom, author, times }] of wanted) {
    if (requested.has(name)) continue
    const [kind, key] = splitEntityKey(waitsFor)
    if (kind === 'person') people.set(name, { address: key })
    else if (isFetchable(kind))
      entities.set(name, {
        ...toFetchable(kind),
        guid: key,
        from: fetchFrom,
        orFrom: fallbackFetchFrom,
        author,
        depth: 0,
        fetchesLeft: fetchesLeftAfter(times + 1) - 1,
      })
  }
  const finders = await enqueueJobsOfKind(pod, transaction, discoverPersonJob, [...people.values()])
  const fetchers = await enqueueJobsOfKind(pod, transaction, fetchEntityJob, [...entities.values()], {
    delay: FETCH_DELAY_MS,
  })
  return new Map([...requested, ...pairsOf([...people.keys(), ...entities.keys()], [...finders, ...fetchers])])
}

function pairsOf(keys: readonly FetchKey[], rows: readonly number[]): (readonly [FetchKey, number])[] {
  return keys.flatMap((key, index) => {
    const row = rows[index]
    return row === undefined ? [] : [[key, row] as const]
  })
}

/** By the host of the last source: the sender, who has signed the message, and not a person it only names. */
export function buildFetchKey({ waitsFor, fetchFrom, fallbackFetchFrom }: ParkedMessage): FetchKey | undefined {
  const at = fallbackFetchFrom ?? fetchFrom
  const [kind] = splitEntityKey(waitsFor)
  if (at === undefined || (kind !== 'person' && !isFetchable(kind))) return undefined
  return `${waitsFor} ${splitAddress(at)?.host ?? at}`
}

async function findRequested(
  transaction: Knex.Transaction,
  waiting: readonly ParkedMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const entityKeys = new Set(waiting.map(({ waitsFor }) => waitsFor))
  const rows = await queryPrepared<{ key: FetchKey; id: number }>(transaction, 'requested-already', requestedAlready, [
    [...entityKeys],
  ])
  return new Map(rows.map(({ key, id }) => [key, id]))
}

const requestedAlready = `
  select waits_for || ' ' || asked_of as key, max(asked_by) as id
  from unnest(${opaqueParam('$1', 'text[]')}) as entity_key join waiting on waits_for = entity_key
  where asked_by is not null
  group by waits_for, asked_of`
