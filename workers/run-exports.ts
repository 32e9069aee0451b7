import { deleteExpiredExports } from '../src/domain/archives/exports.js'
import { makeWaitingExports } from '../src/federation/archives/make-exports.js'
import type { Services } from '../src/services/services.js'
import { runPeriodically } from './run-periodically.js'

/** An export is a private request of one person, and takes longer than jobs may. */
const POLL_INTERVAL_MS = 20_000

/** Looks for exports to make, and for those whose time is over. An isolated copy has none: it may share the folder of its original. */
export function startExports(services: Services): { stop(): Promise<void> } {
  if (services.config.isolated) return { stop: async () => {} }
  return runPeriodically(POLL_INTERVAL_MS, async (stopping) => {
    try {
      await makeWaitingExports(services, stopping)
      await deleteExpiredExports(services)
    } catch (err) {
      services.log.debug({ err }, 'exports not read') // an outage has its own log lines
    }
  })
}
