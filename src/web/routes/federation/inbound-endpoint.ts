import { openRecipientLookup, type RecipientLookup } from '../../../domain/accounts/recipient-lookup.js'
import type { Refusal } from '../../../jobs/inbound/inbound-backlog.js'
import { openPacking, type Packing, type PackingLimits } from '../../../jobs/inbound/pack-messages.js'
import type { Pod } from '../../../pod/pod.js'

type Channel = 'public' | 'private'

/** What became of a message at the door. Only what is accepted is in the queue; `malformed` got its 202 all the same. */
export type Outcome =
  | 'accepted'
  | 'malformed'
  | 'unknown_recipient'
  | 'too_large'
  | 'compressed'
  | 'broken_off'
  | 'overloaded'
  | 'queue_away'
  | 'database_away'
  | Refusal

/** Where messages of other pods come in: thousands a second at times, so they are counted and never logged. */
export interface InboundEndpoint {
  readonly packing: Packing
  readonly recipients: RecipientLookup
  count(channel: Channel, outcome: Outcome): void
  counts(): Iterable<{ readonly channel: Channel; readonly outcome: Outcome; readonly messages: number }>
}

export function openInboundEndpoint(pod: Pod, limits?: PackingLimits): InboundEndpoint {
  const counted: Readonly<Record<Channel, Map<Outcome, number>>> = { public: new Map(), private: new Map() }
  return {
    packing: openPacking(pod, limits),
    recipients: openRecipientLookup(pod),
    count(channel, outcome) {
      counted[channel].set(outcome, (counted[channel].get(outcome) ?? 0) + 1)
    },
    *counts() {
      for (const channel of ['public', 'private'] as const) {
        for (const [outcome, messages] of counted[channel]) yield { channel, outcome, messages }
      }
    },
  }
}
