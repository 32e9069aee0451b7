import type { PodWithRules } from '../../domain/operations/pods.js'
import type { ListedPod } from '../../persistence/operations/pod-lists.js'
import { type PodStateFields, toDeliveryState } from '../../persistence/outbound/delivery-state.js'
import { formatAddressHost } from '../../protocol/address.js'
import { presentPodRule } from './pod-rules.js'

function presentFields(services: PodStateFields & Omit<ListedPod, 'oldestWaiting'>, now: Date) {
  const { status, software, failures, people, waiting, dead, pausedUntil } = services
  return {
    host: formatAddressHost(services),
    state: toDeliveryState(services, now),
    status,
    software,
    failures,
    next_try_at: services.nextTryAt?.toISOString() ?? null,
    blocked_at: services.blockedAt?.toISOString() ?? null,
    limited_at: services.limitedAt?.toISOString() ?? null,
    paused_until: pausedUntil !== null && pausedUntil > now ? pausedUntil.toISOString() : null,
    people: Number(people),
    waiting: Number(waiting),
    dead: Number(dead),
  } as const
}

export function presentListedPod(pod: ListedPod, now: Date) {
  return { ...presentFields(pod, now), oldest_waiting_at: pod.oldestWaiting?.toISOString() ?? null }
}

export function presentPod({ pod, rules, activity, errors }: PodWithRules, now: Date) {
  return {
    ...presentFields(pod, now),
    software_version: pod.softwareVersion,
    last_error: pod.lastError,
    errors: errors.map(({ at, status, error }) => ({ at: at.toISOString(), status, error })),
    offline_since: pod.offlineSince?.toISOString() ?? null,
    last_success_at: pod.lastSuccessAt?.toISOString() ?? null,
    checked_at: pod.checkedAt?.toISOString() ?? null,
    skipped_deliveries: Number(pod.skippedDeliveries),
    probe: pod.probe && { at: pod.probe.at, steps: [...pod.probe.steps] },
    rules: rules.map(presentPodRule),
    delivery_ms: activity.latency,
    days: [...activity.days],
  }
}
