import { publishLiveEvents } from '../../src/domain/notifications/enqueue-live-events.js'
import { deliver } from '../../src/federation/outbound/deliver.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { participate } from '../../src/federation/outbound/participate.js'
import { type DataOf, dispatchRelaysJob, liveEventJob, participateJob } from '../../src/jobs/definitions.js'
import { groupOfRows } from '../../src/jobs/outbox/job-groups.js'
import { type InProcessDelivery, type InProcessHandler, runInGroups } from './run-in-groups.js'

const LIVE_EVENTS_TOGETHER = 500
/** Rows of relays, or of participations, that run at a time; further rows get jobs. */
const CONSEQUENCES_TOGETHER = 64
/** Posts or relayables of a transaction, and those with which a group need not wait for more. */
const RECORDS = { max: 256, fullGroupWork: 64 } as const

/**
 * Rows of remote messages share a transaction, so that a group costs as much as one. At a low rate they wait for each other: live
 * events a moment, relays for a second, and participations, which no person sees, for two (docs/decisions/0052). One group of relays and
 * one of participations runs at a time, alongside the jobs of their queue: under load they must leave the database to others. While a burst
 * of received messages is stored, both wait, five seconds at most.
 */
export const inProcessHandlers: readonly InProcessHandler[] = [
  {
    job: liveEventJob,
    maxConcurrent: LIVE_EVENTS_TOGETHER,
    open: runInGroups(
      { maxItems: LIVE_EVENTS_TOGETHER, spacing: { intervalMs: 250, fullGroupWork: RECORDS.fullGroupWork } },
      (services, rows) =>
        publishLiveEvents(
          services,
          rows.map(({ id }) => id),
        ),
    ),
  },
  {
    job: participateJob,
    maxConcurrent: CONSEQUENCES_TOGETHER,
    open: runInGroups<DataOf<typeof participateJob>>(
      {
        maxItems: CONSEQUENCES_TOGETHER,
        spacing: { intervalMs: 2_000, fullGroupWork: RECORDS.fullGroupWork },
        afterInbound: true,
        work: { max: RECORDS.max, of: ({ postGuids }) => postGuids.length },
      },
      (services, rows) => participate(services, groupOfRows(rows)),
    ),
  },
  {
    job: dispatchRelaysJob,
    maxConcurrent: CONSEQUENCES_TOGETHER,
    open: runInGroups<DataOf<typeof dispatchRelaysJob>>(
      {
        maxItems: CONSEQUENCES_TOGETHER,
        spacing: { intervalMs: 1_000, fullGroupWork: RECORDS.fullGroupWork },
        afterInbound: true,
        work: { max: RECORDS.max, of: ({ relays }) => relays.length },
      },
      (services, rows) => dispatchRelays(services, groupOfRows(rows)),
    ),
  },
]

/** Deliveries without a job, as many as a job of several pods has. The other pods of a post are left to jobs, for all worker processes. */
export const inProcessDelivery: InProcessDelivery = {
  maxConcurrent: 64,
  run: (services, podId, signal) => deliver(services, [podId], { queue: 'outbound', signal }),
}
