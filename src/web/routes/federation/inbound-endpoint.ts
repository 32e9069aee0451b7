import { openRecipientLookup, type RecipientLookup } from '../../../domain/accounts/recipient-lookup.js'
import type { BacklogRejection } from '../../../jobs/inbound/inbound-backlog.js'
import { openPacking, type Packing, type PackingLimits } from '../../../jobs/inbound/pack-messages.js'
import type { Services } from '../../../services/services.js'

type InboundChannel = 'public' | 'private'

/**
 * How the endpoint handled a message. Only accepted messages are in the queue. A malformed one is also answered with 202, because
 * another attempt could not succeed.
 */
export type ReceiveOutcome =
  | 'accepted'
  | 'malformed'
  | 'unknown_recipient'
  | 'too_large'
  | 'compressed'
  | 'broken_off'
  | 'overloaded'
  | 'drained'
  | 'queue_away'
  | 'database_away'
  | BacklogRejection

/** Receives messages of other pods. They can come by the thousand per second, so they are counted and never logged. */
export interface InboundEndpoint {
  readonly packing: Packing
  readonly recipients: RecipientLookup
  count(channel: InboundChannel, outcome: ReceiveOutcome): void
  counts(): Iterable<{
    readonly channel: InboundChannel
    readonly outcome: ReceiveOutcome
    readonly messages: number
  }>
}

export function openInboundEndpoint(services: Services, limits?: PackingLimits): InboundEndpoint {
  const messageCounts: Readonly<Record<InboundChannel, Map<ReceiveOutcome, number>>> = {
    public: new Map(),
    private: new Map(),
  }
  return {
    packing: openPacking(services, limits),
    recipients: openRecipientLookup(services),
    count(channel, outcome) {
      messageCounts[channel].set(outcome, (messageCounts[channel].get(outcome) ?? 0) + 1)
    },
    *counts() {
      for (const channel of ['public', 'private'] as const) {
        for (const [outcome, messages] of messageCounts[channel]) yield { channel, outcome, messages }
      }
    },
  }
}
