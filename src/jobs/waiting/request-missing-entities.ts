import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { splitAddress } from '../../protocol/address.js'
import type { Services } from '../../services/services.js'
import { type DataOf, discoverPersonJob, type FetchRequest, fetchEntityJob } from '../definitions.js'
import { enqueueJobs, enqueueJobsOfKind, newJob } from '../outbox/enqueue-jobs.js'
import { type EntityKey, isFetchable, splitEntityKey, toFetchable } from './entity-key.js'
import { REFERENCE_LIMITS } from './limits.js'
import type { NewWaitingMessage } from './store-waiting-messages.js'

/** Milliseconds before a fetch: under load a parent is often in a batch that has not committed yet. */
const FETCH_DELAY_MS = 1_000

/** The fetches that a message may still cause after this number of waits: each wait passes half of them on to the entity it waits for. */
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
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  waiting: readonly NewWaitingMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const messagesByKey = new Map<FetchKey, NewWaitingMessage>()
  for (const message of waiting.toReversed()) {
    const fetchKey = buildFetchKey(message)
    if (fetchKey !== undefined) messagesByKey.set(fetchKey, message)
  }
  if (messagesByKey.size === 0) return new Map()
  const requestedKeys = await findRequested(transaction, [...messagesByKey.values()])
  const people = new Map<FetchKey, DataOf<typeof discoverPersonJob>>()
  const entities = new Map<FetchKey, FetchRequest>()
  for (const [fetchKey, message] of messagesByKey) {
    const { waitsFor, fetchFrom = '', fallbackFetchFrom, author, times, movesFollowed } = message
    if (requestedKeys.has(fetchKey)) continue
    const [kind, guidOrAddress] = splitEntityKey(waitsFor)
    if (kind === 'person') people.set(fetchKey, { address: guidOrAddress, movesFollowed })
    else if (isFetchable(kind))
      entities.set(fetchKey, {
        ...toFetchable(kind),
        guid: guidOrAddress,
        from: fetchFrom,
        orFrom: fallbackFetchFrom,
        author,
        depth: 0,
        fetchesLeft: fetchesLeftAfter(times + 1) - 1,
      })
  }
  const discoveryRows = await enqueueJobsOfKind(services, transaction, discoverPersonJob, [...people.values()])
  const fetchJobs = [...entities.values()].map((request) => newJob(fetchEntityJob, request))
  const fetchRows = await enqueueJobs(services, transaction, fetchJobs, { delay: FETCH_DELAY_MS })
  return new Map([
    ...requestedKeys,
    ...pairsOf([...people.keys(), ...entities.keys()], [...discoveryRows, ...fetchRows]),
  ])
}

function pairsOf(keys: readonly FetchKey[], rows: readonly number[]): (readonly [FetchKey, number])[] {
  return keys.flatMap((key, index) => {
    const row = rows[index]
    return row === undefined ? [] : [[key, row] as const]
  })
}

/** Key of a fetch, with the host of the last source: the sender, who has signed the message, and not a person that it only names. */
export function buildFetchKey({ waitsFor, fetchFrom, fallbackFetchFrom }: NewWaitingMessage): FetchKey | undefined {
  const at = fallbackFetchFrom ?? fetchFrom
  const [kind] = splitEntityKey(waitsFor)
  if (at === undefined || (kind !== 'person' && !isFetchable(kind))) return undefined
  return `${waitsFor} ${splitAddress(at)?.host ?? at}`
}

async function findRequested(
  transaction: Knex.Transaction,
  waiting: readonly NewWaitingMessage[],
): Promise<ReadonlyMap<FetchKey, number>> {
  const entityKeys = new Set(waiting.map(({ waitsFor }) => waitsFor))
  const rows = await queryPrepared<{ key: FetchKey; id: number }>(
    transaction,
    'requested-already',
    REQUESTED_ALREADY_SQL,
    [[...entityKeys]],
  )
  return new Map(rows.map(({ key, id }) => [key, id]))
}

const REQUESTED_ALREADY_SQL = `
  select waits_for || ' ' || asked_of as key, max(asked_by) as id
  from unnest(${opaqueParam('$1', 'text[]')}) as entity_key join waiting on waits_for = entity_key
  where asked_by is not null
  group by waits_for, asked_of`
