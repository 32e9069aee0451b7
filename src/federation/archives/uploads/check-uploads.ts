import { SYSTEM_ACTOR } from '../../../domain/moderation/actor.js'
import { hasCode } from '../../../errors/thrown.js'
import {
  claimUpload,
  endCheck,
  hasOtherLists,
  type ImportUpload,
  recordUploadHeartbeat,
  releaseUpload,
} from '../../../persistence/archives/import-uploads.js'
import { User } from '../../../persistence/models/user.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import type { Services } from '../../../services/services.js'
import { identifyOrRecord, importFolder, readArchiveSummary, uploadedFile } from '../imports/begin-import.js'
import { checkArchive } from '../imports/check-archive.js'
import { toImportingUser } from '../imports/import-run-context.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readArchiveOwner } from '../reading/archive-owner.js'
import { openSealedFile } from '../reading/sealed-file.js'
import { deleteSpool, spoolArchive } from '../reading/spool-archive.js'
import { presentReport } from './present-report.js'
import { reserveSplitBytes } from './upload-space.js'

const HEARTBEAT_INTERVAL_MS = 5_000
const MINUTE_MS = 60_000

/** Checks the uploaded archives that wait, one after the other. */
export async function checkUploads(services: Services, stopping: AbortSignal): Promise<void> {
  while (!stopping.aborted) {
    const upload = await claimUpload(services.db, {
      now: services.now(),
      deadAfterSeconds: IMPORT_LIMITS.workerSeconds,
    })
    if (upload === undefined) return
    await checkUpload(services, upload, stopping)
  }
}

async function checkUpload(services: Services, upload: ImportUpload, stopping: AbortSignal): Promise<void> {
  const { id } = upload
  if (upload.attempts > IMPORT_LIMITS.attempts + IMPORT_LIMITS.identityAttempts)
    return fail(services, upload, 'crashed')
  const cancellation = new AbortController()
  const heartbeat = setInterval(() => {
    recordUploadHeartbeat(services.db, upload).then(
      (isChecking) => isChecking || cancellation.abort(),
      () => undefined, // an outage has its own log lines
    )
  }, HEARTBEAT_INTERVAL_MS)
  try {
    await storeCheck(services, upload, AbortSignal.any([stopping, cancellation.signal]))
  } catch (error) {
    if (stopping.aborted) return await releaseUpload(services.db, upload)
    if (cancellation.signal.aborted) return await deleteListsOfDropped(services, upload)
    if (error instanceof ArchiveError) return await fail(services, upload, error.fault)
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) return await fail(services, upload, 'no_space')
    services.log.warn({ err: error, upload: id }, 'check of an archive interrupted') // another attempt follows
  } finally {
    clearInterval(heartbeat)
  }
}

async function storeCheck(services: Services, upload: ImportUpload, signal: AbortSignal): Promise<void> {
  const { uid, userId } = upload
  const user = toImportingUser(
    await User.query(services.db).findById(userId).withGraphFetched('person').throwIfNotFound(),
  )
  const photosFile =
    upload.photoBytes === 0 ? undefined : await openSealedFile(services, uploadedFile(services, uid, 'photos'))
  const spooled = await spoolArchive(await openSealedFile(services, uploadedFile(services, uid, 'archive')), {
    folder: importFolder(services, { uid }),
    maxBytes: services.config.importBytes,
    signal,
    reserve: (bytes) => reserveSplitBytes(services, upload, bytes),
  })
  const owner = readArchiveOwner(spooled.values)
  // The old pod may be away for a moment only.
  const hasLaterAttempt = upload.attempts < IMPORT_LIMITS.identityAttempts
  await identifyOrRecord(services, SYSTEM_ACTOR, { ...owner, hasLaterAttempt }, user)
  const report = presentReport(await checkArchive(services, { spooled, user, photosFile, signal, hasLaterAttempt }))
  const isFinal = report.identity !== 'unproven' || !hasLaterAttempt
  const now = services.now()
  const photos = photosFile === undefined ? 'none' : 'sealed'
  const summary = await readArchiveSummary(spooled, owner, { photos, now })
  const pem = owner.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  const isStored = await endCheck(services.db, upload, {
    state: isFinal ? 'checked' : 'checking',
    checkAt: new Date(now.getTime() + IMPORT_LIMITS.identityMinutes * MINUTE_MS),
    checkedAt: now,
    report,
    facts: summary,
    sealedKey: services.secrets.encrypt(pem, `user ${userId}`),
  })
  if (!isStored) await deleteListsOfDropped(services, upload)
}

async function fail(services: Services, upload: ImportUpload, error: string): Promise<void> {
  if (await endCheck(services.db, upload, { state: 'failed', error, sealedKey: null })) {
    services.log.info({ upload: upload.id, reason: error }, 'archive refused by its check')
  }
  await deleteListsOfDropped(services, upload)
}

/** Deletes the lists of an upload that failed, or that the person has deleted. Another worker may have claimed it and use its own. */
async function deleteListsOfDropped(services: Services, { id, uid }: ImportUpload): Promise<void> {
  if (!(await hasOtherLists(services.db, id))) await deleteSpool(importFolder(services, { uid }))
}
