import type { OwnPostDeliveries } from '../../domain/outbound/post-deliveries.js'
import type { DeliveryReport, MissingDelivery } from '../../persistence/outbound/delivery-report.js'
import { formatAddressHost } from '../../protocol/address.js'

export function presentDeliveryReport({
  verb,
  writtenAt,
  sentTo,
  arrived,
  missing,
  arrivedAt,
  skipped,
}: DeliveryReport) {
  return {
    verb,
    written_at: writtenAt.toISOString(),
    sent_to: sentTo,
    arrived,
    missing: missing.map(({ state, person, attempts, nextTryAt, fault, status, ...hostPort }) => ({
      state,
      pod: formatAddressHost(hostPort),
      person,
      attempts,
      next_try_at: nextTryAt === null ? null : new Date(nextTryAt).toISOString(),
      fault,
      status,
    })),
    arrived_at: arrivedAt.map(({ at, ...hostPort }) => {
      return { pod: formatAddressHost(hostPort), at: new Date(at).toISOString() }
    }),
    skipped: skipped.map(({ reason, ...hostPort }) => ({ pod: formatAddressHost(hostPort), reason })),
  }
}

/** Counts, and for public posts the pods by name: of a private one they would show where its readers are. */
export function presentOwnDeliveries({ public: isPublic, reports }: OwnPostDeliveries) {
  return reports.map(({ verb, writtenAt, sentTo, arrived, missing, arrivedAt, skipped }) => {
    const missingInState = (state: MissingDelivery['state']) => missing.filter((each) => each.state === state)
    const [waiting, refused] = [missingInState('waiting'), missingInState('dead')]
    return {
      verb,
      written_at: writtenAt.toISOString(),
      sent_to: sentTo,
      arrived,
      waiting: waiting.length,
      refused: refused.length,
      skipped: skipped.length,
      ...(isPublic && {
        arrived_pods: arrivedAt.map(formatAddressHost),
        waiting_pods: waiting.map(formatAddressHost),
        refused_pods: refused.map(formatAddressHost),
        skipped_pods: skipped.map(formatAddressHost),
      }),
    }
  })
}
