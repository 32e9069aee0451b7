import { Refusal } from '../../../domain/refusals.js'
import { hasCode } from '../../../errors/thrown.js'
import { deleteOldLookups } from '../../../persistence/archives/archive-lookups.js'
import {
  type ArchiveImport,
  claimImport,
  findArchiveImport,
  finishImport,
  recordImportHeartbeat,
  releaseImport,
} from '../../../persistence/archives/imports.js'
import { ArchiveError, type ArchiveFault } from '../../../protocol/archives/archive-fault.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { IMPORT_LIMITS } from '../limits.js'
import { deleteSpool, isFolder } from '../reading/spool-archive.js'
import { importFolder } from './begin-import.js'
import { ImportRun, ImportStopped, type RunOptions, TurnOver, withEarlierAddresses } from './import-run.js'
import { openImportContext } from './import-run-context.js'
import { keepForRetry, retryTime } from './retry-items.js'
import { undoImport } from './stop-import.js'

/** Milliseconds between two heartbeats. */
const HEARTBEAT_INTERVAL_MS = 5_000

/**
 * Claims an import and runs it from its cursor until it ends or its turn is over. Returns the import; undefined: there is none to run. With
 * an `id` only that import is claimed.
 */
export async function runImport(
  services: Services,
  id: number | null,
  { signal, afterImportId, ...options }: RunOptions,
): Promise<ArchiveImport | undefined> {
  const archiveImport = await claimImportHere(services, { id, afterImportId })
  if (archiveImport === undefined) return undefined
  if (archiveImport.attempts > IMPORT_LIMITS.attempts) {
    await failImport(services, archiveImport, CRASHED)
    return findArchiveImport(services.db, { id: archiveImport.id })
  }
  const cancellation = new AbortController()
  const heartbeat = setInterval(() => {
    recordImportHeartbeat(services.db, archiveImport).then(
      (isRunning) => isRunning || cancellation.abort(),
      () => undefined, // an outage has its own log lines
    )
  }, HEARTBEAT_INTERVAL_MS)
  const stopSignal = AbortSignal.any([signal, cancellation.signal])
  try {
    const context = await openImportContext(services, archiveImport, stopSignal)
    const run = new ImportRun(await withEarlierAddresses(context, archiveImport), archiveImport, {
      ...options,
      signal: stopSignal,
    })
    await run.run()
    const finishedAt = services.now()
    // The next repetition deletes the lists if this process dies before it has chosen the items that are kept.
    const result = { state: 'done', finishedAt, retryAt: retryTime(finishedAt, 0) } as const
    if (!(await finishImport(services.db, archiveImport, result))) throw new ImportStopped()
    await keepForRetry(services, archiveImport, 0)
    await deleteOldLookups(services.db, services.now())
    services.log.info({ import: archiveImport.id, from: archiveImport.oldAddress }, 'archive imported')
    return run.finished()
  } catch (error) {
    if (error instanceof TurnOver) {
      await releaseImport(services.db, archiveImport)
      return archiveImport
    }
    const isStopped = stopSignal.aborted || error instanceof ImportStopped
    await (isStopped ? releaseImport(services.db, archiveImport) : endAttempt(services, archiveImport, error)).catch(
      (err: unknown) => {
        services.log.warn({ err, import: archiveImport.id }, 'archive import not updated after an error')
      },
    )
    throw error
  } finally {
    clearInterval(heartbeat)
  }
}

/**
 * Claims an import whose folder is on this machine. Without a common folder an import of another machine is released, and a worker there
 * claims it; a folder that is missing for longer than uploads are kept is on no machine.
 */
async function claimImportHere(
  services: Services,
  { id, afterImportId }: { readonly id: number | null; readonly afterImportId: number | undefined },
): Promise<ArchiveImport | undefined> {
  const idsOnOtherMachines: number[] = []
  for (;;) {
    const claim = {
      deadAfterSeconds: IMPORT_LIMITS.workerSeconds,
      id,
      after: afterImportId,
      except: idsOnOtherMachines,
    }
    const claimed = await claimImport(services.db, claim)
    if (claimed === undefined || (await isFolder(importFolder(services, claimed)))) return claimed
    if (services.now().getTime() - claimed.createdAt.getTime() > IMPORT_LIMITS.uploadDays * DAY_MS) return claimed
    await releaseImport(services.db, claimed)
    services.log.debug({ import: claimed.id }, 'archive of an import is on another machine')
    idsOnOtherMachines.push(claimed.id)
  }
}

/** The reason of an import whose attempts all end at the same place. */
const CRASHED = 'crashed'

/** The archive belongs to another account. Both are found before the move at the latest. */
const FAULTS_OF_OWNER: ReadonlySet<string> = new Set<ArchiveFault>(['key_mismatch', 'moved_elsewhere'])

/** Fails the import, or lets the next attempt continue at the cursor after the time limit of a dead worker. */
async function endAttempt(services: Services, claimed: ArchiveImport, error: unknown): Promise<void> {
  if (error instanceof ArchiveError) {
    // Nothing may remain of another person's archive, as if the check had refused it.
    if (FAULTS_OF_OWNER.has(error.fault)) await undoImport(services, claimed)
    return failImport(services, claimed, error.fault, error)
  }
  if (error instanceof Refusal) return failImport(services, claimed, error.reason, error)
  if (hasCode(error, 'ENOSPC', 'EDQUOT')) return failImport(services, claimed, 'no_space', error)
  services.log.warn({ err: error, import: claimed.id }, 'archive import interrupted')
  // The attempts since the last progress, not since the claim.
  const attempts = (await findArchiveImport(services.db, { id: claimed.id }))?.attempts ?? claimed.attempts
  if (attempts >= IMPORT_LIMITS.attempts) await failImport(services, claimed, CRASHED, error)
}

async function failImport(services: Services, claimed: ArchiveImport, reason: string, err?: unknown): Promise<void> {
  const result = { state: 'failed', finishedAt: services.now(), error: reason } as const
  if (!(await finishImport(services.db, claimed, result))) return // paused, cancelled or of another worker
  services.log.error({ err, import: claimed.id, reason }, 'archive import failed')
  await deleteSpool(importFolder(services, claimed))
}
