import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { exportFile } from '../../domain/archives/exports.js'
import { ARCHIVE_LIMITS } from '../../domain/archives/limits.js'
import { enqueueAccountMail } from '../../domain/mail/enqueue-mail.js'
import { hasSpaceFor, readFolderSpace } from '../../domain/operations/storage.js'
import { hasCode } from '../../errors/thrown.js'
import { BACKGROUND_LIMITS } from '../../jobs/inbound/limits.js'
import {
  claimExport,
  completeExport,
  type Export,
  estimateExportBytes,
  failDeadExports,
  failExport,
  recordExportProgress,
} from '../../persistence/archives/exports.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { User } from '../../persistence/models/user.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import { type ExportProgress, exportToFile } from './export-archive.js'

/** Milliseconds between two records of the progress. */
const PROGRESS_INTERVAL_MS = 2_000

/** The free space must be this multiple of the estimated size, because other processes write to the disk too. */
const SPACE_FACTOR = 2

const CLAIM = { deadAfterSeconds: ARCHIVE_LIMITS.exportWorkerSeconds, attempts: ARCHIVE_LIMITS.exportAttempts }

/** Creates the waiting exports, one after the other. An interrupted export begins again, on any worker. */
export async function makeWaitingExports(services: Services, stopping: AbortSignal): Promise<void> {
  await services.pictures.deleteExports((await failDeadExports(services.db, CLAIM)).map(exportFile))
  while (!stopping.aborted) {
    const claimedExport = await claimExport(services.db, CLAIM)
    if (claimedExport === undefined) return
    await makeExport(services, claimedExport, stopping)
  }
}

async function makeExport(services: Services, claimed: Export, stopping: AbortSignal): Promise<void> {
  const { id, kind } = claimed
  const startedAt = performance.now()
  const draft = await services.pictures.exportDraft(exportFile(claimed))
  const heartbeat = startProgressHeartbeat(services, id)
  try {
    await rm(draft, { force: true }) // of a worker that has died
    const { username, personId } = await User.query(services.db).findById(claimed.userId).throwIfNotFound()
    const estimate = await estimateExportBytes(services.db, personId, kind)
    const failTooLarge = async (bytes: number) => {
      const { maxExportBytes } = services.pictures
      services.log.error(
        { export: id, kind, bytes, maxExportBytes },
        'export failed: the S3 store takes no file of this size',
      )
      await failExport(services.db, id, 'too_large', services.now())
    }
    // The size of photos is known, and that of an archive only afterwards.
    if (kind === 'photos' && estimate > services.pictures.maxExportBytes) return await failTooLarge(estimate)
    if (!hasSpaceFor(await readFolderSpace(dirname(draft)), SPACE_FACTOR * estimate, 0)) {
      services.log.error({ export: id, kind, estimate }, 'export failed: the disk has too little space')
      return await failExport(services.db, id, 'no_space', services.now())
    }
    const signal = AbortSignal.any([stopping, heartbeat.cancelled])
    const { bytes, sha256, leftOut } = await exportToFile(services, {
      username,
      kind,
      file: draft,
      share: BACKGROUND_LIMITS.exportShare,
      signal,
      reportProgress: heartbeat.report,
    })
    if (bytes > services.pictures.maxExportBytes) {
      await rm(draft)
      return await failTooLarge(bytes)
    }
    await services.pictures.storeExport(exportFile(claimed), { path: draft, bytes, sha256 })
    const finishedAt = services.now()
    const expiresAt = new Date(finishedAt.getTime() + ARCHIVE_LIMITS.exportDays * DAY_MS)
    const finishedExport = { bytes, sha256, leftOut, finishedAt, expiresAt }
    const isWanted = await inRequestTransaction(services, async (transaction) => {
      if (!(await completeExport(transaction, claimed, finishedExport))) return false
      await enqueueAccountMail(services, transaction, 'archive_ready', claimed.userId)
      return true
    })
    if (!isWanted) await services.pictures.deleteExports([exportFile(claimed)])
    services.log.info({ export: id, kind, bytes, ms: Math.round(performance.now() - startedAt) }, 'export made')
  } catch (error) {
    await rm(draft, { force: true })
    if (stopping.aborted || heartbeat.cancelled.aborted) return
    const isFull = hasCode(error, 'ENOSPC')
    services.log.error({ err: error, export: id, kind }, 'export failed')
    await failExport(services.db, id, isFull ? 'no_space' : 'internal_error', services.now())
  } finally {
    heartbeat.stop()
  }
}

/** Records the progress of an export every few seconds; this is also the heartbeat of this worker. */
function startProgressHeartbeat(services: Pick<Services, 'db' | 'log'>, id: number) {
  const cancellation = new AbortController()
  let latest: ExportProgress = { section: 'profile', done: 0 }
  const recordProgress = async () => {
    const isWanted = await recordExportProgress(services.db, id, latest).catch(() => true) // an outage has its own log lines
    if (!isWanted) cancellation.abort()
  }
  const timer = setInterval(() => void recordProgress(), PROGRESS_INTERVAL_MS)
  return {
    cancelled: cancellation.signal,
    report(progress: ExportProgress) {
      latest = progress
    },
    stop: () => clearInterval(timer),
  }
}
