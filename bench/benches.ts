import { benchAccept } from './accept.js'
import { benchApi } from './api.js'
import { benchBackup } from './backup.js'
import type { Bench } from './bench.js'
import { benchCrash } from './crash.js'
import { benchDeliveries } from './deliveries.js'
import { benchDiscovery } from './discovery.js'
import { benchFilters } from './filters.js'
import { benchHostile } from './hostile.js'
import { benchIdle } from './idle.js'
import { benchInbound } from './inbound.js'
import { benchLimits } from './limits.js'
import { benchListeners } from './listeners.js'
import { benchLived } from './lived.js'
import { benchOutbound } from './outbound.js'
import { benchPeer } from './peer.js'
import { benchPersist } from './persist.js'
import { benchProcesses } from './processes.js'
import { benchProtocol } from './protocol.js'
import { benchSpamWave } from './spam-wave.js'
import { benchTakeOver } from './take-over.js'

/** By name, in the order in which they run when none is named. */
export const benches: ReadonlyMap<string, Bench> = new Map<string, Bench>([
  ['limits', benchLimits],
  ['filters', benchFilters],
  ['spam-wave', benchSpamWave],
  ['lived', benchLived],
  ['protocol', benchProtocol],
  ['peer', benchPeer],
  ['accept', benchAccept],
  ['persist', benchPersist],
  ['inbound', benchInbound],
  ['processes', benchProcesses],
  ['crash', benchCrash],
  ['outbound', benchOutbound],
  ['deliveries', benchDeliveries],
  ['discovery', benchDiscovery],
  ['api', benchApi],
  ['backup', benchBackup],
  ['listeners', benchListeners],
  ['idle', benchIdle],
  ['take-over', benchTakeOver],
  ['hostile', benchHostile],
])

/** These take longer than all others together. */
const ONLY_WHEN_NAMED: ReadonlySet<string> = new Set(['hostile', 'take-over'])

export const usualBenches: readonly string[] = [...benches.keys()].filter((name) => !ONLY_WHEN_NAMED.has(name))
