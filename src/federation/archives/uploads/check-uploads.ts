import { SYSTEM_ACTOR } from '../../../domain/moderation/actor.js'
import { hasCode } from '../../../errors/thrown.js'
import {
  changeUpload,
  claimUpload,
  expireUploads,
  findExpiredUploads,
  type ImportUpload,
  recordUploadHeartbeat,
  releaseUpload,
} from '../../../persistence/archives/import-uploads.js'
import { deleteUnusedSpace } from '../../../persistence/archives/upload-space.js'
import { User } from '../../../persistence/models/user.js'
import type { Pod } from '../../../pod/pod.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { identifyOrRecord, importFolder, readImportFacts, uploadedFile } from '../imports/begin-import.js'
import { checkArchive } from '../imports/check-archive.js'
import { toImportingUser } from '../imports/import-run-context.js'
import { presentReport } from '../imports/present-report.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readArchiveOwner } from '../reading/archive-owner.js'
import { openSealedFile } from '../reading/sealed-file.js'
import { deleteSpool, spoolArchive } from '../reading/spool-archive.js'
import { deleteUploadedFiles } from './receive-upload.js'

const HEARTBEAT_INTERVAL_MS = 5_000
const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS

/** Checks the uploaded archives that wait, one after the other. */
export async function checkUploads(pod: Pod, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const claimed = await claimUpload(pod.db, { now: pod.now(), deadAfterSeconds: IMPORT_LIMITS.workerSeconds })
    if (claimed === undefined) return
    await checkUpload(pod, claimed, stopping)
  }
}

async function checkUpload(pod: Pod, upload: ImportUpload, stopping: AbortSignal): Promise<void> {
  const { id, uid } = upload
  if (upload.attempts > IMPORT_LIMITS.attempts + IMPORT_LIMITS.identityAttempts) return fail(pod, upload, 'crashed')
  const unwanted = new AbortController()
  const alive = setInterval(() => {
    recordUploadHeartbeat(pod.db, id).then(
      (isWanted) => isWanted || unwanted.abort(),
      () => undefined, // an outage has its own log lines
    )
  }, HEARTBEAT_INTERVAL_MS)
  try {
    await storeCheck(pod, upload, AbortSignal.any([stopping, unwanted.signal]))
  } catch (error) {
    if (stopping.aborted) return await releaseUpload(pod.db, id)
    if (unwanted.signal.aborted) return await deleteSpool(importFolder(pod, { uid }))
    if (error instanceof ArchiveError) return await fail(pod, upload, error.fault)
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) return await fail(pod, upload, 'no_space')
    pod.log.warn({ err: error, upload: id }, 'check of an archive interrupted') // another attempt follows
  } finally {
    clearInterval(alive)
  }
}

async function storeCheck(pod: Pod, upload: ImportUpload, signal: AbortSignal): Promise<void> {
  const { id, uid, userId } = upload
  const user = toImportingUser(await User.query(pod.db).findById(userId).withGraphFetched('person').throwIfNotFound())
  const photosFile = upload.photoBytes === 0 ? undefined : await openSealedFile(pod, uploadedFile(pod, uid, 'photos'))
  const spooled = await spoolArchive(await openSealedFile(pod, uploadedFile(pod, uid, 'archive')), {
    folder: importFolder(pod, { uid }),
    maxBytes: pod.config.importBytes,
    signal,
  })
  const owner = readArchiveOwner(spooled.values)
  await identifyOrRecord(pod, SYSTEM_ACTOR, owner, user)
  const report = presentReport(await checkArchive(pod, { spooled, user, photosFile, signal }))
  const facts = await readImportFacts(spooled, owner, photosFile === undefined ? 'none' : 'sealed')
  // The old pod may be away for a moment only.
  const isFinal = report.identity !== 'unproven' || upload.attempts >= IMPORT_LIMITS.identityAttempts
  const now = pod.now()
  const pem = owner.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  await changeUpload(pod.db, id, {
    state: isFinal ? 'checked' : 'checking',
    checkAt: new Date(now.getTime() + IMPORT_LIMITS.identityMinutes * MINUTE_MS),
    aliveAt: null,
    checkedAt: now,
    report,
    facts,
    sealedKey: pod.secrets.seal(pem, `user ${userId}`),
  })
}

async function fail(pod: Pod, { id, uid }: ImportUpload, error: string): Promise<void> {
  pod.log.info({ upload: id, reason: error }, 'archive refused by its check')
  await changeUpload(pod.db, id, { state: 'failed', error, sealedKey: null, aliveAt: null })
  await deleteSpool(importFolder(pod, { uid }))
}

const EXPIRED_BATCH_SIZE = 100

/** Deletes the files of uploads whose time is over. */
export async function deleteExpiredUploads(pod: Pick<Pod, 'db' | 'config' | 'now'>): Promise<void> {
  const now = pod.now()
  const before = (days: number) => new Date(now.getTime() - days * DAY_MS)
  const expired = await findExpiredUploads(pod.db, {
    doneBefore: before(IMPORT_LIMITS.doneUploadDays),
    uploadedBefore: before(IMPORT_LIMITS.uploadDays),
    limit: EXPIRED_BATCH_SIZE,
  })
  await deleteUnusedSpace(pod.db)
  if (expired.length === 0) return
  await expireUploads(
    pod.db,
    expired.map(({ id }) => id),
    now,
  )
  for (const { uid, isDone } of expired) {
    await deleteUploadedFiles(pod, uid)
    if (!isDone) await deleteSpool(importFolder(pod, { uid })) // an import that is done keeps the items that are tried again
  }
}
