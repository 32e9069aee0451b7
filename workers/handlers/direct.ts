import { publishAnnouncements } from '../../src/domain/notifications/announcements.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { participate } from '../../src/federation/outbound/participate.js'
import { announceJob, type DataOf, dispatchRelaysJob, participateJob } from '../../src/jobs/definitions.js'
import { groupOfRows } from '../../src/jobs/outbox/outbox.js'
import { type DirectDelivery, type DirectHandler, runTogether } from '../direct-runs.js'
import { deliverAndParticipate } from './outbound.js'

const ANNOUNCEMENTS_TOGETHER = 500
/** Beyond these, rows get jobs. */
const CONSEQUENCES_TOGETHER = 64
/** Posts or relayables of a transaction, and those with which a group need not wait for more. */
const RECORDS = { atMost: 256, enough: 64 } as const

/**
 * Rows of remote messages share a transaction, so that a group costs as much as one. At a low rate they wait for each other: live
 * events a moment, relays for a second, and participations, which no person sees, for two (docs/decisions/0052). One group of relays and
 * one of participations runs at a time, beside the jobs of their queue: under load they must leave the database to others. While a burst
 * of received messages is stored, both wait, five seconds at most.
 */
export const directHandlers: readonly DirectHandler[] = [
  {
    job: announceJob,
    atOnce: ANNOUNCEMENTS_TOGETHER,
    open: runTogether({ items: ANNOUNCEMENTS_TOGETHER, spacing: { ms: 250, enough: RECORDS.enough } }, (pod, rows) =>
      publishAnnouncements(
        pod,
        rows.map(({ id }) => id),
      ),
    ),
  },
  {
    job: participateJob,
    atOnce: CONSEQUENCES_TOGETHER,
    open: runTogether<DataOf<typeof participateJob>>(
      {
        items: CONSEQUENCES_TOGETHER,
        spacing: { ms: 2_000, enough: RECORDS.enough },
        afterInbound: true,
        work: { atMost: RECORDS.atMost, of: ({ postGuids }) => postGuids.length },
      },
      (pod, rows) => participate(pod, groupOfRows(rows)),
    ),
  },
  {
    job: dispatchRelaysJob,
    atOnce: CONSEQUENCES_TOGETHER,
    open: runTogether<DataOf<typeof dispatchRelaysJob>>(
      {
        items: CONSEQUENCES_TOGETHER,
        spacing: { ms: 1_000, enough: RECORDS.enough },
        afterInbound: true,
        work: { atMost: RECORDS.atMost, of: ({ relays }) => relays.length },
      },
      (pod, rows) => dispatchRelays(pod, groupOfRows(rows)),
    ),
  },
]

/** As many as a job of several pods has. A post to more pods leaves the others to jobs, for all worker processes. */
export const directDelivery: DirectDelivery = {
  atOnce: 64,
  run: (pod, podId, signal) => deliverAndParticipate(pod, [podId], { queue: 'outbound', signal }),
}
