import { retryItems } from '../src/federation/archives/imports/retry-items.js'
import { runImport } from '../src/federation/archives/imports/run-import.js'
import { sendDueAnnouncements } from '../src/federation/archives/moves/send-announcements.js'
import { checkUploads, deleteExpiredUploads } from '../src/federation/archives/uploads/check-uploads.js'
import type { Services } from '../src/services/services.js'
import { makeImportedPicture } from './handlers/make-imported-picture.js'

/** Checks uploaded archives, runs imports that wait or whose process has died, and announces accounts that have moved to this pod. */
export async function runImportsAndAnnouncements(services: Services, stopping: AbortSignal): Promise<void> {
  try {
    await checkUploads(services, stopping)
    await deleteExpiredUploads(services)
  } catch (err) {
    services.log.debug({ err }, 'checks of archives interrupted') // an outage has its own log lines
  }
  try {
    const options = { signal: stopping, makePicture: makeImportedPicture }
    while (!stopping.aborted && (await runImport(services, null, options)) !== undefined);
    await retryItems(services, stopping)
  } catch (err) {
    services.log.debug({ err }, 'imports interrupted') // an import that fails and an outage have their own log lines
  }
  try {
    await sendDueAnnouncements(services, stopping)
  } catch (err) {
    if (!stopping.aborted) services.log.warn({ err }, 'announcements of moves interrupted')
  }
}
