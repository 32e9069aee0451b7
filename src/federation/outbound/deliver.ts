import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { knock } from '../../jobs/outbox/enqueue-deliveries.js'
import { DELIVERY_LIMITS, type DeliveryLimits } from '../../limits.js'
import { DELIVERY_PRIORITY } from '../../persistence/outbound/delivery-priority.js'
import {
  type DueDelivery,
  findDueDeliveries,
  isLeasableWhenUnproven,
  type LeasedPod,
  leasePod,
  type PodHealthChange,
  recordDeliveryResults,
  releasePod,
} from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { requestOrYield } from '../discovery/yield-to-other-pods.js'
import { countDelivery, type Lane, noteArrival } from './delivery-figures.js'
import { participateInNext } from './participate.js'
import { failureOf, noteOf, type Outcome, outcomeOfAnswer, outcomeOfError } from './pod-health.js'
import { type SealedDelivery, sealDeliveries } from './seal-deliveries.js'

interface DeliverOptions {
  /** The slots of `outbound` are for pods that have proven to answer. */
  readonly lane: Lane
  readonly signal: AbortSignal
  readonly limits?: Partial<DeliveryLimits>
}

/** A pod in hand. */
interface Drain {
  readonly pod: Pod
  readonly other: LeasedPod
  /** Whose lease it is. */
  readonly owner: string
  readonly lane: Lane
  readonly signal: AbortSignal
  readonly limits: DeliveryLimits
}

interface Sent {
  readonly due: DueDelivery
  readonly outcome: Outcome
  /** What was encrypted for a single person. */
  readonly encryptedEnvelope: string | undefined
}

/**
 * Sends one pod what is due, the oldest first, until nothing is, the pod fails, or its time is over. There is one drain of a
 * pod at a time in all processes; who comes meanwhile has nothing to do.
 */
export async function deliver(pod: Pod, podId: number, { lane, signal, ...options }: DeliverOptions): Promise<void> {
  const limits = { ...DELIVERY_LIMITS, ...options.limits }
  const owner = randomUUID()
  const lease = { podId, owner, milliseconds: limits.leaseMs, onlyProven: lane === 'outbound' }
  const other = await leasePod(pod.db, lease)
  if (other === undefined) {
    const isInWrongLane = lane === 'outbound' && (await isLeasableWhenUnproven(pod.db, podId))
    if (isInWrongLane) await knock(pod, [{ podId, proven: false }])
    return
  }
  let end: Awaited<ReturnType<typeof drainPod>> = 'broken off'
  try {
    end = await drainPod({ pod, other, owner, lane, signal, limits })
  } finally {
    if (end !== 'released') await releasePod(pod.db, podId, owner)
  }
  // Broken off, it is for the sweeper: whatever was in the way is still there.
  if (end === 'time over') await knock(pod, [{ podId, proven: lane === 'outbound' }])
  if (end === 'gave way') await knock(pod, [{ podId, proven: false }])
}

async function drainPod(drain: Drain): Promise<'released' | 'gave way' | 'time over' | 'broken off'> {
  const until = performance.now() + drain.limits.drainMs
  let { failures } = drain.other
  let hasAnswered = false
  while (performance.now() < until) {
    // The first one is a probe: a pod that does not answer costs one exchange and no more.
    const began = performance.now()
    const rows = await findDueDeliveries(drain.pod.db, drain.other.id, hasAnswered ? drain.limits.rowsAtOnce : 1)
    const due = shortRound(rows, drain.limits)
    const sealed = await sealDeliveries(
      drain.pod,
      due.filter(({ held }) => !held),
    )
    const sent = await sendAll(drain, sealed, hasAnswered)
    const note = noteOf(
      sent.map(({ outcome }) => outcome),
      failures,
    )
    const isMoreDue = await settle(drain, sent, note)
    logRound(drain, sent, performance.now() - began)
    hasAnswered ||= sent.some(isAnswered)
    await participateAfter(drain, sent)
    if (note.kind === 'well') {
      if (failures > 0) drain.pod.log.info({ pod: nameOf(drain.other) }, 'the pod answers again')
      failures = 0
    }
    if (note.kind === 'away' && failures === 0) {
      drain.pod.log.info({ pod: nameOf(drain.other), reason: note.error }, 'the pod does not answer')
    }
    if (note.kind === 'silent') return 'gave way'
    if (!isMoreDue) return 'released'
    if (sent.some(({ outcome }) => outcome.kind === 'untried')) return 'broken off'
    if (isOnlyRelays(due)) await pauseFor(performance.now() - began, drain)
  }
  return 'time over'
}

/** One line for a round: how many deliveries ended how, and how long it took. */
function logRound({ pod, other, lane }: Drain, sent: readonly Sent[], ms: number): void {
  if (sent.length === 0) return
  const counts: Record<string, number> = {}
  for (const { outcome } of sent) counts[outcome.kind] = (counts[outcome.kind] ?? 0) + 1
  pod.log.info({ pod: nameOf(other), lane, deliveries: sent.length, ...counts, ms: Math.round(ms) }, 'delivery round')
}

function nameOf({ host, port }: LeasedPod): string {
  return port === 443 ? host : `${host}:${port}`
}

/** Own words of local users go without relays, and wait for one round of these at most: it has only a few. */
function shortRound(due: readonly DueDelivery[], { relaysInRound }: DeliveryLimits): readonly DueDelivery[] {
  const own = due.filter(isOwnWord)
  return own.length > 0 ? own : due.slice(0, relaysInRound)
}

function isOwnWord({ priority }: DueDelivery): boolean {
  return priority === DELIVERY_PRIORITY.own
}

function isOnlyRelays(due: readonly DueDelivery[]): boolean {
  return due.length > 0 && due.every(({ priority }) => priority === DELIVERY_PRIORITY.relay)
}

/** A flood of relays takes half of the time: each relay is signed, and signatures keep the processors from everything else. */
async function pauseFor(roundMs: number, { signal, limits }: Drain): Promise<void> {
  await pause(Math.min(roundMs, limits.relayPauseMs), undefined, { signal }).catch(() => undefined)
}

/**
 * A few at a time, begun in their order; what one person has written, one message after the other. Once the pod has failed no
 * other begins.
 */
async function sendAll(
  drain: Drain,
  sealed: readonly SealedDelivery[],
  hasAnswered: boolean,
): Promise<readonly Sent[]> {
  const sent: Sent[] = []
  const turns = openTurns()
  const waiting = sealed.map((delivery) => ({ delivery, turn: turns(delivery.due) })).values()
  let isOver = false
  async function sendOneByOne(): Promise<void> {
    for (const { delivery, turn } of waiting) {
      await turn.before
      if (isOver) return turn.end()
      try {
        const began = performance.now()
        const outcome = await send(drain, delivery, hasAnswered)
        const ms = performance.now() - began
        isOver ||= outcome.kind === 'away' || outcome.kind === 'untried'
        const encryptedEnvelope = 'body' in delivery && !delivery.due.isPublic ? delivery.body : undefined
        sent.push({ due: delivery.due, outcome, encryptedEnvelope })
        countDelivery(drain.lane, outcome, ms)
        if (outcome.kind === 'arrived') noteArrival(delivery.due)
      } finally {
        turn.end()
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(drain.limits.atOnce, sealed.length) }, sendOneByOne))
  return sent
}

interface Turn {
  /** Resolves when the messages that the same person wrote before have ended, whatever became of them. */
  readonly before: Promise<unknown>
  end(): void
}

/** Own words of one sender follow each other; the deliveries of one message, and whatever is relayed, wait for nothing. */
function openTurns(): (due: DueDelivery) => Turn {
  const latest = new Map<number, { messageId: number; before: Promise<unknown>; ends: Promise<void>[] }>()
  return ({ senderId, messageId, priority }) => {
    if (priority !== DELIVERY_PRIORITY.own) return { before: Promise.resolve(), end() {} }
    const { promise, resolve } = promiseWithResolvers()
    const known = latest.get(senderId)
    const isSameMessage = known?.messageId === messageId
    const before = isSameMessage ? known.before : Promise.all(known?.ends ?? [])
    latest.set(senderId, { messageId, before, ends: isSameMessage ? [...known.ends, promise] : [promise] })
    return { before, end: resolve }
  }
}

function promiseWithResolvers(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = () => {}
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

async function send(drain: Drain, delivery: SealedDelivery, hasAnswered: boolean): Promise<Outcome> {
  const { pod, other, lane, signal, limits } = drain
  if ('fault' in delivery) return { kind: 'unsealed', fault: delivery.fault }
  const origin = podOrigin(other)
  if (origin === undefined) {
    return {
      kind: 'forbidden',
      fault: 'not_allowed',
      reason: `${other.host}:${other.port} is no place to send anything to.`,
    }
  }
  try {
    const { path, contentType, body } = delivery
    const post = (signal: AbortSignal) =>
      pod.remote.post(`${origin}${path}`, contentType, body, { deadline: limits.exchangeMs, signal })
    const mayYield = lane === 'outbound' && !hasAnswered
    const answer = mayYield ? await requestOrYield(post, signal, limits) : await post(signal)
    return answer === undefined ? { kind: 'silent' } : outcomeOfAnswer(answer, delivery.due.isPublic)
  } catch (error) {
    return signal.aborted ? { kind: 'untried', hasBegun: true } : outcomeOfError(error)
  }
}

/** True: more is due, and this process still has the lease. */
async function settle(drain: Drain, sent: readonly Sent[], note: PodHealthChange): Promise<boolean> {
  const { pod, other, owner, limits } = drain
  return recordDeliveryResults(pod.db, {
    podId: other.id,
    owner,
    milliseconds: limits.leaseMs,
    arrived: sent.filter(({ outcome }) => outcome.kind === 'arrived').map(({ due }) => due.id),
    failed: sent.flatMap(({ due, outcome, encryptedEnvelope }) => {
      const failure = failureOf(outcome, due, limits)
      return failure === undefined ? [] : [{ ...failure, id: due.id, encryptedEnvelope }]
    }),
    podHealth: note,
    hasAnswered: sent.some(isAnswered),
    redirects: limits.redirects,
  })
}

function isAnswered({ outcome }: Sent): boolean {
  return outcome.kind === 'arrived' || ('status' in outcome && outcome.status !== undefined)
}

/** One participation of each author is under way at a time; the next one is written when it has arrived. */
async function participateAfter({ pod, other }: Drain, sent: readonly Sent[]): Promise<void> {
  const arrived = sent.filter(
    ({ due, outcome }) => due.priority === DELIVERY_PRIORITY.participation && outcome.kind === 'arrived',
  )
  const postGuids = arrived.flatMap(({ due: { about } }) => about ?? [])
  await participateInNext(pod, postGuids, { podId: other.id, isFirstOfPod: !other.takesParticipations })
}
