import { discoverSigners } from '../src/federation/discover-signers.js'
import type { discoverSignersJob, Handlers } from '../src/jobs/definitions.js'
import type { Work } from '../src/jobs/outbox.js'
import type { Pod } from '../src/pod.js'

/** Look-ups for messages that anybody may have sent: a queue of their own, so that no other work waits behind them. */
export const unprovenHandlers: Handlers<typeof discoverSignersJob, Pod, Work> = {
  'discover-signers': (pod, { data: { host } }, deadline) => discoverSigners(pod, host, deadline),
}
