import type { Knex } from 'knex'
import { activeFilters } from '../../domain/moderation/filters/active-filters.js'
import {
  checkDocuments,
  type FilteredDocument,
  isRejected,
  recordStored,
} from '../../domain/moderation/filters/check-documents.js'
import type { Pod } from '../../pod/pod.js'
import type { Arrival, ResolvedArrival, StepResult, StoredRecord } from './batch.js'
import { receivedType } from './received-entities.js'

/** Arrivals that match filters. */
export type FilteredArrivals = ReadonlyMap<Arrival, FilteredDocument>

interface FilterStep extends StepResult<ResolvedArrival> {
  readonly filtered: FilteredArrivals
}

/**
 * Compares a batch with the filters of this pod. Without filters it does nothing, and without a match it reads nothing from the
 * database.
 */
export async function filterArrivals(pod: Pod, arrivals: readonly ResolvedArrival[]): Promise<FilterStep> {
  const filtered = await findFiltered(pod, arrivals)
  const rejects = (arrival: ResolvedArrival) => {
    const filterHits = filtered.get(arrival)
    return filterHits !== undefined && isRejected(filterHits)
  }
  return {
    ready: filtered.size === 0 ? arrivals : arrivals.filter((arrival) => !rejects(arrival)),
    rejected: arrivals.filter(rejects).map((arrival) => {
      return {
        message: arrival.message,
        arrival,
        fault: 'Filtered',
        reason: 'a filter of this pod rejects it',
      } as const
    }),
    ignored: [],
    waiting: [],
    filtered,
  }
}

async function findFiltered(pod: Pod, arrivals: readonly ResolvedArrival[]): Promise<FilteredArrivals> {
  if ((await activeFilters(pod)).size === 0) return new Map()
  const documents = arrivals.flatMap((arrival) => {
    if (arrival.message.isReleased) return []
    const { entity, references } = arrival
    const document = receivedType(entity).documentOf(entity, references)
    return document === undefined ? [] : [{ ...document, arrival }]
  })
  const checkedDocuments = await checkDocuments(pod, documents)
  return new Map(checkedDocuments.map((each) => [each.document.arrival, each]))
}

/** Records the hits of a batch in its transaction. A repeated message counts once, a rejected one each time. */
export async function recordFilteredArrivals(
  pod: Pick<Pod, 'now' | 'log' | 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  filtered: FilteredArrivals,
  records: readonly StoredRecord[],
): Promise<void> {
  if (filtered.size === 0) return
  const stored = records.flatMap(({ arrival }) => filtered.get(arrival) ?? [])
  await recordStored(pod, transaction, stored, [...filtered.values()].filter(isRejected))
}
