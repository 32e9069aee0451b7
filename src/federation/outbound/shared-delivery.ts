import type { Knex } from 'knex'
import { type GroupCommitLimits, groupCommit } from '../../concurrency/group-commit.js'
import { type GrowthLimits, openGroupGrowth } from '../../concurrency/group-growth.js'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { type DeliveryResults, recordDeliveryResults } from '../../persistence/outbound/delivery-results.js'
import { type DueDelivery, type DueRequest, takeDueDeliveries } from '../../persistence/outbound/due-deliveries.js'
import { type LeaseRequest, type LeaseResult, leasePods } from '../../persistence/outbound/pod-leases.js'
import { type DeliverySlots, openDeliverySlots } from './delivery-slots.js'
import { DELIVERY_LIMITS } from './limits.js'
import type { UnansweredRequests } from './yield-to-other-pods.js'

/** Slots and statements that the delivery runs of a process share. Pods that need a statement at the same time share it. */
export interface SharedDelivery {
  /** Slots for proven pods. */
  readonly slots: DeliverySlots
  readonly unanswered: UnansweredRequests
  /** Undefined: the pod may not be contacted now, or another run has leased it. */
  lease(request: LeaseRequest): Promise<LeaseResult | undefined>
  takeDue(request: DueRequest): Promise<readonly DueDelivery[]>
  /** True: more is due, and the lease is extended. */
  record(results: DeliveryResults): Promise<boolean>
  /** Records the time of a round with messages of local users. */
  recordLocalUserRound(): void
  /** Whether there was a round with messages of local users a short time ago. */
  isLocalUserRoundRecent(): boolean
}

/** One for each open database, so that all running jobs share it. */
const sharedByDatabase = stateByOwner<Knex, SharedDelivery>()

export function getSharedDelivery(db: Knex): SharedDelivery {
  return sharedByDatabase(db, () => openSharedDelivery(db))
}

/** Rounds that end while a statement runs go together in the next one: a slow pod delays no other. */
const ONE_AT_A_TIME = { maxConcurrent: 1, maxItems: 256 } as const

const RESULTS: GroupCommitLimits<DeliveryResults> = {
  ...ONE_AT_A_TIME,
  maxSize: 4 * 1024 * 1024,
  sizeOf: ({ failed }) => failed.reduce((sum, { encryptedEnvelope }) => sum + (encryptedEnvelope?.length ?? 0), 0),
}

/** Results wait for each other for some milliseconds while many arrive. */
const RESULTS_GROWTH: GrowthLimits = { loads: [{ items: 4, ms: 0, pauseMs: 1, waitMs: 25 }], startItems: 64 }

function openSharedDelivery(db: Knex): SharedDelivery {
  const lease = groupCommit(ONE_AT_A_TIME, async (requests: readonly LeaseRequest[]) => {
    const byPod = new Map<number, LeaseRequest>()
    // The first request of a pod gets the lease.
    for (const request of requests) if (!byPod.has(request.podId)) byPod.set(request.podId, request)
    const ofPods = [...byPod.values()]
    const results = await leasePods(db, ofPods)
    return new Map(ofPods.map(({ podId, leaseId }) => [leaseId, results.get(podId)]))
  })
  const takeDue = groupCommit(ONE_AT_A_TIME, async (requests: readonly DueRequest[]) => {
    const ofPods = new Map<number, DueDelivery[]>(requests.map(({ podId }) => [podId, []]))
    for (const due of await takeDueDeliveries(db, requests)) ofPods.get(due.podId)?.push(due)
    return ofPods
  })
  const record = groupCommit(
    RESULTS,
    (results: readonly DeliveryResults[]) => recordDeliveryResults(db, results),
    openGroupGrowth(RESULTS_GROWTH),
  )

  let lastLocalUserRound = Number.NEGATIVE_INFINITY

  return {
    recordLocalUserRound() {
      lastLocalUserRound = performance.now()
    },
    isLocalUserRoundRecent: () => performance.now() - lastLocalUserRound < DELIVERY_LIMITS.localUsersRecentMs,
    slots: openDeliverySlots(DELIVERY_LIMITS),
    unanswered: new Set(),
    lease: async (request) => (await lease([request])).get(request.leaseId),
    takeDue: async (request) => (await takeDue([request])).get(request.podId) ?? [],
    record: async (results) => (await record([results])).has(results.podId),
  }
}
