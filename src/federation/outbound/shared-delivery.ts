import type { Knex } from 'knex'
import { type GroupCommitLimits, groupCommit } from '../../jobs/group-commit.js'
import {
  type DeliveryResults,
  type DueDelivery,
  type DueRequest,
  holdAndFindDueDeliveries,
  type LeaseRequest,
  type LeaseResult,
  leasePods,
  recordDeliveryResults,
} from '../../persistence/outbound/due-deliveries.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import { type DeliverySlots, openDeliverySlots } from './delivery-slots.js'
import { DELIVERY_LIMITS } from './limits.js'

/** What the delivery runs of a process share: slots, and statements. Pods that need a statement at the same time share it. */
export interface SharedDelivery {
  /** For proven pods. */
  readonly slots: DeliverySlots
  /** Undefined: the pod may not be contacted now, or another run has leased it. */
  lease(request: LeaseRequest): Promise<LeaseResult | undefined>
  findDue(request: DueRequest): Promise<readonly DueDelivery[]>
  /** True: more is due, and the lease is extended. */
  record(results: DeliveryResults): Promise<boolean>
  /** Messages of local users are sent. */
  recordOwnRound(): void
  /** Messages of local users were sent a short time ago. */
  isOwnRoundRecent(): boolean
}

/** One for each open database, so that all running jobs share it. */
const sharedByDatabase = stateByOwner<Knex, SharedDelivery>()

export function getSharedDelivery(db: Knex): SharedDelivery {
  return sharedByDatabase(db, () => openSharedDelivery(db))
}

/** Rounds that end while a statement runs go together in the next one: a slow pod delays no other. */
const ONE_AT_A_TIME = { atOnce: 1, items: 256 } as const

/** Results wait for each other for some milliseconds while many arrive. */
const RESULTS: GroupCommitLimits<DeliveryResults> = {
  ...ONE_AT_A_TIME,
  size: 4 * 1024 * 1024,
  sizeOf: ({ failed }) => failed.reduce((sum, { encryptedEnvelope }) => sum + (encryptedEnvelope?.length ?? 0), 0),
  growth: { after: 4, slow: 0, enough: 64, ms: 25 },
}

function openSharedDelivery(db: Knex): SharedDelivery {
  const lease = groupCommit(ONE_AT_A_TIME, async (requests: readonly LeaseRequest[]) => {
    const ofPods = [...new Map(requests.toReversed().map((request) => [request.podId, request])).values()]
    const results = await leasePods(db, ofPods)
    return new Map(ofPods.map(({ podId, owner }) => [owner, results.get(podId)]))
  })
  const findDue = groupCommit(ONE_AT_A_TIME, async (requests: readonly DueRequest[]) => {
    const ofPods = new Map<number, DueDelivery[]>(requests.map(({ podId }) => [podId, []]))
    for (const due of await holdAndFindDueDeliveries(db, requests)) ofPods.get(due.podId)?.push(due)
    return ofPods
  })
  const record = groupCommit(RESULTS, (results: readonly DeliveryResults[]) => recordDeliveryResults(db, results))

  let lastOwnRound = Number.NEGATIVE_INFINITY

  return {
    recordOwnRound() {
      lastOwnRound = performance.now()
    },
    isOwnRoundRecent: () => performance.now() - lastOwnRound < DELIVERY_LIMITS.ownRecentMs,
    slots: openDeliverySlots(DELIVERY_LIMITS),
    lease: async (request) => (await lease([request])).get(request.owner),
    findDue: async (request) => (await findDue([request])).get(request.podId) ?? [],
    record: async (results) => (await record([results])).has(results.podId),
  }
}
