import { publishAnnouncementsOfRows } from '../../src/domain/notifications/announcements.js'
import { deliver } from '../../src/federation/outbound/deliver.js'
import { announceJob, dispatchRelaysJob, participateJob } from '../../src/jobs/definitions.js'
import { type DirectDelivery, type DirectHandler, runEach, runTogether } from '../direct-runs.js'
import { relayHandlers } from './outbound.js'

const ANNOUNCEMENTS_TOGETHER = 500

/**
 * Announcements take one lock of the whole pod, so that a group of rows costs as much as one. Relays and participations run one at a
 * time beside their queue: under load they must leave the database to others.
 */
export const directHandlers: readonly DirectHandler[] = [
  {
    job: announceJob,
    atOnce: ANNOUNCEMENTS_TOGETHER,
    open: runTogether(ANNOUNCEMENTS_TOGETHER, publishAnnouncementsOfRows),
  },
  { job: participateJob, atOnce: 1, open: runEach(relayHandlers.participate) },
  { job: dispatchRelaysJob, atOnce: 1, open: runEach(relayHandlers['dispatch-relays']) },
]

/** As many as a job of several pods has. A post to more pods leaves the others to jobs, for all worker processes. */
export const directDelivery: DirectDelivery = {
  atOnce: 64,
  run: (pod, podId, signal) => deliver(pod, [podId], { queue: 'outbound', signal }),
}
