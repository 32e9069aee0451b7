import { rm } from 'node:fs/promises'
import { exportFile } from '../../domain/archives/exports.js'
import { ARCHIVE_LIMITS } from '../../domain/archives/limits.js'
import { enqueueAccountMail } from '../../domain/mail/enqueue-mail.js'
import { hasCode } from '../../errors/thrown.js'
import {
  claimExport,
  completeExport,
  type Export,
  failDeadExports,
  failExport,
  recordExportProgress,
} from '../../persistence/archives/exports.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { type ExportProgress, exportToFile } from './export-archive.js'

const DAY_MS = 24 * 60 * 60 * 1_000
/** Milliseconds between two notes of the progress. */
const PROGRESS_INTERVAL_MS = 2_000

const CLAIM = { deadAfterSeconds: ARCHIVE_LIMITS.exportWorkerSeconds, attempts: ARCHIVE_LIMITS.exportAttempts }

/** Makes the exports that wait, one after the other. An interrupted export begins again, on any worker. */
export async function makeWaitingExports(pod: Pod, stopping: AbortSignal): Promise<void> {
  await pod.pictures.deleteExports((await failDeadExports(pod.db, CLAIM)).map(exportFile))
  while (!stopping.aborted) {
    const claimed = await claimExport(pod.db, CLAIM)
    if (claimed === undefined) return
    await makeExport(pod, claimed, stopping)
  }
}

async function makeExport(pod: Pod, claimed: Export, stopping: AbortSignal): Promise<void> {
  const { id, kind } = claimed
  const started = performance.now()
  const draft = await pod.pictures.exportDraft(exportFile(claimed))
  const notes = keepNoting(pod, id)
  try {
    await rm(draft, { force: true }) // of a worker that has died
    const { username } = await User.query(pod.db).findById(claimed.userId).throwIfNotFound()
    const signal = AbortSignal.any([stopping, notes.unwanted])
    const { bytes, sha256, leftOut } = await exportToFile(pod, {
      username,
      kind,
      file: draft,
      signal,
      reportProgress: notes.report,
    })
    await pod.pictures.storeExport(exportFile(claimed), { path: draft, bytes, sha256 })
    const finishedAt = pod.now()
    const expiresAt = new Date(finishedAt.getTime() + ARCHIVE_LIMITS.exportDays * DAY_MS)
    const finishedExport = { bytes, sha256, leftOut, finishedAt, expiresAt }
    const isWanted = await inTransaction(pod, async (transaction) => {
      if (!(await completeExport(transaction, claimed, finishedExport))) return false
      await enqueueAccountMail(pod, transaction, 'archive_ready', claimed.userId)
      return true
    })
    if (!isWanted) await pod.pictures.deleteExports([exportFile(claimed)])
    pod.log.info({ export: id, kind, bytes, ms: Math.round(performance.now() - started) }, 'export made')
  } catch (error) {
    await rm(draft, { force: true })
    if (stopping.aborted || notes.unwanted.aborted) return
    const isFull = hasCode(error, 'ENOSPC')
    pod.log.error({ err: error, export: id, kind }, 'export failed')
    await failExport(pod.db, id, isFull ? 'no_space' : 'internal_error', pod.now())
  } finally {
    notes.stop()
  }
}

/** Notes the progress of an export every few seconds, which is also the heartbeat of this worker. */
function keepNoting(pod: Pick<Pod, 'db' | 'log'>, id: number) {
  const unwanted = new AbortController()
  let latest: ExportProgress = { section: 'profile', done: 0 }
  const note = async () => {
    const isWanted = await recordExportProgress(pod.db, id, latest).catch(() => true) // an outage has its own log lines
    if (!isWanted) unwanted.abort()
  }
  const timer = setInterval(() => void note(), PROGRESS_INTERVAL_MS)
  return {
    unwanted: unwanted.signal,
    report(progress: ExportProgress) {
      latest = progress
    },
    stop: () => clearInterval(timer),
  }
}
