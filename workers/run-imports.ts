import { runImport } from '../src/federation/archives/imports/run-import.js'
import { sendDueAnnouncements } from '../src/federation/archives/moves/send-announcements.js'
import type { Pod } from '../src/pod/pod.js'
import { makeImportedPicture } from './handlers/make-imported-picture.js'

/** Runs imports that wait or whose process has died, and announces accounts that have moved to this pod. */
export async function runImportsAndAnnouncements(pod: Pod, stopping: AbortSignal): Promise<void> {
  try {
    const options = { signal: stopping, makePicture: makeImportedPicture }
    while (!stopping.aborted && (await runImport(pod, null, options)) !== undefined);
  } catch (err) {
    pod.log.debug({ err }, 'imports interrupted') // an import that fails and an outage have their own log lines
  }
  try {
    await sendDueAnnouncements(pod, stopping)
  } catch (err) {
    if (!stopping.aborted) pod.log.warn({ err }, 'announcements of moves interrupted')
  }
}
