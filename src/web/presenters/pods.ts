import type { PodWithRules } from '../../domain/operations/pods.js'
import type { ListedPod } from '../../persistence/operations/pod-lists.js'
import { type PodStateFields, toDeliveryState } from '../../persistence/outbound/delivery-state.js'
import type { KnownPod } from '../../persistence/outbound/known-pods.js'
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

export function presentPod({ pod, rules, activity, exchange, errors }: PodWithRules, now: Date) {
  return {
    ...presentFields(pod, now),
    oldest_waiting_at: exchange.oldestWaiting?.toISOString() ?? null,
    delivering: exchange.isDelivering,
    probing: exchange.isDelivering && pod.failures > 0,
    local_followers: exchange.localFollowers,
    remote_followers: exchange.remoteFollowers,
    certificate_ends_at: certificateEndOf(pod),
    software_version: pod.softwareVersion,
    last_error: pod.lastError,
    errors: errors.map(({ at, status, error }) => ({ at: at.toISOString(), status, error })),
    offline_since: pod.offlineSince?.toISOString() ?? null,
    last_success_at: pod.lastSuccessAt?.toISOString() ?? null,
    checked_at: pod.checkedAt?.toISOString() ?? null,
    skipped_deliveries: Number(pod.skippedDeliveries),
    probe: pod.probe && {
      at: pod.probe.at,
      steps: pod.probe.steps.map(({ step, ok, ms, detail }) => ({ step, ok, ms, detail })),
    },
    rules: rules.map(presentPodRule),
    delivery_ms: activity.latency,
    days: [...activity.days],
  }
}

/** The end of the certificate, as the last probe has seen it. */
export function certificateEndOf({ probe }: Pick<KnownPod, 'probe'>): string | null {
  return probe?.steps.find(({ step }) => step === 'tls')?.certificateEndsAt ?? null
}
