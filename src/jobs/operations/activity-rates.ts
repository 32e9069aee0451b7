import { type CounterSums, readNextMinute, sumCountersFrom } from '../../persistence/operations/activity-counters.js'
import type { Services } from '../../services/services.js'
import { sum } from '../sum.js'
import { PERSISTED_COUNTERS } from './persisted-counters.js'

interface ActivityTotals {
  readonly received: number
  readonly stored: number
  readonly delivered: number
}

const { received, inboundMessages, deliveryAttempts } = PERSISTED_COUNTERS

/**
 * Counts the messages of all processes between two calls; undefined at the first call. Totals are of a fixed minute on: the difference
 * of two sums over the last hour lacks what an hour ago was counted. The minute moves on with each call, so that few rows are read.
 */
export function openActivityCounts({ db }: Pick<Services, 'db'>): () => Promise<ActivityTotals | undefined> {
  let last: { readonly since: Date; readonly totals: ActivityTotals } | undefined

  return async () => {
    const nextSince = await readNextMinute(db)
    const counters = await sumCountersFrom(db, { since: last?.since ?? nextSince, nextSince })
    const totals = totalsOf(counters, 'count')
    const before = last?.totals
    last = { since: nextSince, totals: totalsOf(counters, 'sinceNext') }
    return (
      before && {
        received: totals.received - before.received,
        stored: totals.stored - before.stored,
        delivered: totals.delivered - before.delivered,
      }
    )
  }
}

function totalsOf(counters: readonly CounterSums[], field: 'count' | 'sinceNext'): ActivityTotals {
  const total = (name: string, label: string, value: string) =>
    sum(
      counters.filter((counter) => counter.name === name && counter.labels[label] === value).map((each) => each[field]),
    )
  return {
    received: total(received, 'outcome', 'accepted'),
    stored: total(inboundMessages, 'end', 'stored'),
    delivered: total(deliveryAttempts, 'outcome', 'arrived'),
  }
}
