import { retryItems } from '../src/federation/archives/imports/retry-items.js'
import { runImport } from '../src/federation/archives/imports/run-import.js'
import { IMPORT_LIMITS } from '../src/federation/archives/limits.js'
import { sendDueAnnouncements } from '../src/federation/archives/moves/send-announcements.js'
import { checkUploads } from '../src/federation/archives/uploads/check-uploads.js'
import { deleteExpiredUploads, deleteLeftLists } from '../src/federation/archives/uploads/delete-expired.js'
import type { Services } from '../src/services/services.js'
import { makeImportedPicture } from './handlers/make-imported-picture.js'
import { runPeriodically } from './run-periodically.js'

/** How often a worker checks for imports that a command has begun. */
const POLL_INTERVAL_MS = 10_000

const RUN_OPTIONS = { makePicture: makeImportedPicture, turnMs: IMPORT_LIMITS.turnMs }

/** An import that fails and an outage have their own log lines. */
type ImportTask = (services: Services, stopping: AbortSignal) => Promise<void>

/** Checks uploaded archives, runs imports and tries items again, and announces accounts that have moved to this pod. */
export const IMPORT_TASKS: readonly ImportTask[] = [checkArchives, runImports, retryImports, announceMoves]

/**
 * Runs each task by itself: a long check, or an import of people on slow pods, does not delay the others. An isolated copy runs none: it
 * may share the folder of its original.
 */
export function startImports(services: Services): { stop(): Promise<void> } {
  const tasks = services.config.isolated ? [] : IMPORT_TASKS
  const loops = tasks.map((task) => runPeriodically(POLL_INTERVAL_MS, (stopping) => task(services, stopping)))
  return {
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

async function checkArchives(services: Services, stopping: AbortSignal): Promise<void> {
  try {
    await checkUploads(services, stopping)
    await deleteExpiredUploads(services)
    await deleteLeftLists(services)
  } catch (err) {
    services.log.debug({ err }, 'checks of archives interrupted')
  }
}

/** Runs imports that wait or whose process has died, in turns. */
async function runImports(services: Services, stopping: AbortSignal): Promise<void> {
  let afterImportId = 0
  try {
    while (!stopping.aborted) {
      const archiveImport = await runImport(services, null, { ...RUN_OPTIONS, signal: stopping, afterImportId })
      if (archiveImport === undefined) return
      afterImportId = archiveImport.id
    }
  } catch (err) {
    services.log.debug({ err }, 'imports interrupted')
  }
}

async function retryImports(services: Services, stopping: AbortSignal): Promise<void> {
  try {
    await retryItems(services, stopping)
  } catch (err) {
    services.log.debug({ err }, 'items of imports not tried again')
  }
}

async function announceMoves(services: Services, stopping: AbortSignal): Promise<void> {
  try {
    await sendDueAnnouncements(services, stopping)
  } catch (err) {
    if (!stopping.aborted) services.log.warn({ err }, 'announcements of moves interrupted')
  }
}
