import type { Bench } from './bench.js'

/** Benches by name, in their usual order. The code of a bench is loaded when the bench runs. */
const LOADERS: ReadonlyMap<string, () => Promise<Bench>> = new Map<string, () => Promise<Bench>>([
  ['limits', async () => (await import('./machine/limits.js')).benchLimits],
  ['filters', async () => (await import('./operations/filters.js')).benchFilters],
  ['spam-wave', async () => (await import('./operations/spam-wave.js')).benchSpamWave],
  ['lived', async () => (await import('./lived/lived.js')).benchLived],
  ['protocol', async () => (await import('./protocol/protocol.js')).benchProtocol],
  ['peer', async () => (await import('./protocol/peer.js')).benchPeer],
  ['accept', async () => (await import('./inbound/accept.js')).benchAccept],
  ['persist', async () => (await import('./inbound/persist.js')).benchPersist],
  ['inbound', async () => (await import('./inbound/inbound.js')).benchInbound],
  ['processes', async () => (await import('./inbound/processes.js')).benchProcesses],
  ['crash', async () => (await import('./inbound/crash.js')).benchCrash],
  ['outbound', async () => (await import('./outbound/outbound.js')).benchOutbound],
  ['deliveries', async () => (await import('./outbound/deliveries.js')).benchDeliveries],
  ['discovery', async () => (await import('./api/discovery.js')).benchDiscovery],
  ['api', async () => (await import('./api/api.js')).benchApi],
  ['backup', async () => (await import('./operations/backup.js')).benchBackup],
  ['listeners', async () => (await import('./api/listeners.js')).benchListeners],
  ['idle', async () => (await import('./operations/idle.js')).benchIdle],
  ['take-over', async () => (await import('./operations/take-over.js')).benchTakeOver],
  ['hostile', async () => (await import('./hostile/hostile.js')).benchHostile],
])

export const benchNames: readonly string[] = [...LOADERS.keys()]

/** Benches that take longer than all others together. */
const ONLY_WHEN_NAMED: ReadonlySet<string> = new Set(['hostile', 'take-over'])

export const usualBenches: readonly string[] = benchNames.filter((name) => !ONLY_WHEN_NAMED.has(name))

export async function loadBench(name: string): Promise<Bench> {
  const load = LOADERS.get(name)
  if (load === undefined) throw new Error(`There is no bench ${name}.`)
  return load()
}
