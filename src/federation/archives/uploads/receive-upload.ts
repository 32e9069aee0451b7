import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { requireOriginalPod } from '../../../domain/archives/require-original.js'
import { newGuid } from '../../../domain/new-guid.js'
import { Refusal } from '../../../domain/refusals.js'
import { hasCode } from '../../../errors/thrown.js'
import {
  changeUpload,
  countUploadsSince,
  deleteUpload,
  findOpenUpload,
  type ImportUpload,
  insertUpload,
  lockUpload,
} from '../../../persistence/archives/import-uploads.js'
import { findUnfinishedImport } from '../../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { importFolder, importRunning, uploadedFile } from '../imports/begin-import.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ImportingUser } from '../owner.js'
import { writeSealed } from '../reading/sealed-file.js'
import { deleteSpool } from '../reading/spool-archive.js'
import {
  endLease,
  extendLease,
  leaseUpload,
  noSpace,
  receivedBytesOf,
  reservedFor,
  type UploadKind,
  type UploadLease,
  uploadMissing,
} from './upload-space.js'

/** Throws unless users may import archives themselves. */
export function requireImportsOn(services: Pick<Services, 'config'>): void {
  requireOriginalPod(services)
  if (services.config.imports === 'on') return
  throw new Refusal('imports_off', 'On this pod only its operator imports archives.')
}

/** Begins an upload. Only one of an account is open at a time, and the number of checked archives a day is limited. */
export async function beginUpload(services: Services, { userId }: ImportingUser): Promise<ImportUpload> {
  requireImportsOn(services)
  const now = services.now()
  if ((await findUnfinishedImport(services.db, userId)) !== undefined) throw importRunning()
  const today = await countUploadsSince(services.db, userId, new Date(now.getTime() - DAY_MS))
  if (today >= IMPORT_LIMITS.checksADay) {
    throw new Refusal('too_many_checks', `At most ${IMPORT_LIMITS.checksADay} archives a day are checked.`)
  }
  const upload = await inRequestTransaction(services, (transaction) =>
    insertUpload(transaction, { uid: newGuid(), userId, createdAt: now }),
  )
  if (upload === undefined) throw new Refusal('upload_running', 'An uploaded archive is not finished.')
  await mkdir(dirname(uploadedFile(services, upload.uid, 'archive').path), { recursive: true, mode: 0o700 })
  return upload
}

/** Stores a whole file of an upload, encrypted. */
export async function storeUploadedFile(
  services: Services,
  { uid, userId }: ImportUpload,
  kind: UploadKind,
  source: AsyncIterable<Buffer>,
): Promise<void> {
  const lease = { userId, uid, kind, offset: 0, bytes: 0 }
  await writePart(services, await leaseUpload(services, lease), 0, source)
}

/**
 * Appends a part of a file to the received parts. Resolves with the bytes that have arrived then. A part at another offset is
 * refused, so that a script can go on after a break.
 */
export async function storeUploadedPart(
  services: Services,
  { userId }: ImportingUser,
  { kind, offset, bytes }: { readonly kind: UploadKind; readonly offset: number; readonly bytes: number },
  source: AsyncIterable<Buffer>,
): Promise<number> {
  requireOriginalPod(services)
  const { uid } = await requireOpenUpload(services, userId)
  const lease = await leaseUpload(services, { userId, uid, kind, offset, bytes: offset + bytes })
  return writePart(services, lease, offset, source)
}

/** How many bytes of a file have arrived. */
export async function countReceivedBytes(
  services: Services,
  { userId }: ImportingUser,
  kind: UploadKind,
): Promise<number> {
  const upload = await requireOpenUpload(services, userId)
  return receivedBytesOf(upload, kind)
}

async function writePart(
  services: Services,
  leased: UploadLease,
  offset: number,
  source: AsyncIterable<Buffer>,
): Promise<number> {
  const { upload, kind } = leased
  const max = kind === 'archive' ? services.config.importBytes : services.config.importPhotoBytes
  let lease = leased
  const extend = async (bytes: number) => {
    if (bytes > max) throw new Refusal('too_large', 'The file is larger than this pod accepts.')
    if (bytes > reservedFor(lease)) lease = await extendLease(services, lease, bytes + IMPORT_LIMITS.partBytes)
  }
  let receivedBytes: number | undefined
  try {
    receivedBytes = await writeSealed(
      services,
      uploadedFile(services, upload.uid, kind),
      offset,
      reserveChunks(source, offset, extend),
    )
  } catch (error) {
    await endLease(services, lease, undefined)
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) throw noSpace(error)
    if (hasCode(error, 'ENOENT')) throw uploadMissing() // dropped in the meantime
    throw error
  }
  await endLease(services, lease, receivedBytes)
  return receivedBytes
}

async function* reserveChunks(
  source: AsyncIterable<Buffer>,
  offset: number,
  beforeBytes: (end: number) => Promise<void>,
): AsyncGenerator<Buffer> {
  let end = offset
  for await (const chunk of source) {
    end += chunk.length
    await beforeBytes(end)
    yield chunk
  }
}

/** The upload is complete: a worker checks the archive. */
export async function requestCheck(services: Services, { userId }: ImportingUser): Promise<void> {
  requireOriginalPod(services)
  const { uid } = await requireOpenUpload(services, userId)
  await inRequestTransaction(services, async (transaction) => {
    const upload = await lockUpload(transaction, userId, uid)
    if (upload?.state !== 'uploading' || upload.archiveBytes === 0) throw uploadMissing()
    await changeUpload(transaction, upload.id, { state: 'uploaded', checkAt: services.now() })
  })
}

/** Deletes an upload that has not become an import, with its files. It still counts as a check of the day. */
export async function dropUpload(services: Services, { userId }: ImportingUser): Promise<void> {
  requireOriginalPod(services)
  const open = await findOpenUpload(services.db, userId)
  if (open === undefined) return
  const isDropped = await inRequestTransaction(services, async (transaction) => {
    const upload = await lockUpload(transaction, userId, open.uid)
    if (upload === undefined || upload.state === 'started') return false
    if (upload.state === 'uploading') await deleteUpload(transaction, upload.id)
    else await changeUpload(transaction, upload.id, { state: 'expired', sealedKey: null })
    return true
  })
  if (!isDropped) return
  await deleteUploadedFiles(services, open.uid)
  await deleteSpool(importFolder(services, open))
}

/** Deletes the uploaded files. */
export async function deleteUploadedFiles(services: Pick<Services, 'config'>, uid: string): Promise<void> {
  await rm(dirname(uploadedFile(services, uid, 'archive').path), { recursive: true, force: true })
}

async function requireOpenUpload({ db }: Pick<Services, 'db'>, userId: number): Promise<ImportUpload> {
  const open = await findOpenUpload(db, userId)
  if (open === undefined) throw uploadMissing()
  return open
}
