import { hasSpaceFor, readFolderSpace } from '../../../domain/operations/storage.js'
import { Refusal } from '../../../domain/refusals.js'
import { type ImportUpload, lockUpload } from '../../../persistence/archives/import-uploads.js'
import {
  findUploadSpace,
  finishWriting,
  lockReservedBytes,
  saveSplitBytes,
  saveUploadSpace,
  type UploadSpace,
} from '../../../persistence/archives/upload-space.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import type { Services } from '../../../services/services.js'
import { IMPORT_LIMITS } from '../limits.js'

export type UploadKind = 'archive' | 'photos'

/** The end of a file of an upload, to which only one request writes. */
export interface UploadLease {
  readonly upload: ImportUpload
  readonly kind: UploadKind
  readonly space: UploadSpace
}

interface WantedLease {
  readonly userId: number
  readonly uid: string
  readonly kind: UploadKind
  readonly offset: number
  /** Bytes of the file for which there has to be space. */
  readonly bytes: number
}

/**
 * Claims the end of a file and reserves space on the disk. The transaction ends before anything is written. Throws a `Refusal` if the
 * file ends elsewhere, if another request writes to it, or if there is no space.
 */
export async function leaseUpload(services: Services, wanted: WantedLease): Promise<UploadLease> {
  const { userId, uid, kind, offset, bytes } = wanted
  if (!hasSpaceFor(await readFolderSpace(services.config.uploadsDir), bytes - offset, IMPORT_LIMITS.keptFreeBytes)) {
    throw noSpace()
  }
  return inRequestTransaction(services, async (transaction) => {
    const upload = await lockUpload(transaction, userId, uid)
    if (upload?.state !== 'uploading') throw uploadMissing()
    const receivedBytes = receivedBytesOf(upload, kind)
    const { writingUntil } = (await findUploadSpace(transaction, uid)) ?? { writingUntil: null }
    if (offset !== receivedBytes || (writingUntil !== null && writingUntil > services.now())) {
      throw new Refusal('upload_offset', `The next part begins at byte ${receivedBytes}.`, {
        details: { offset: receivedBytes },
      })
    }
    return { upload, kind, space: await reserve(services, transaction, uid, bytesWith(upload, kind, bytes)) }
  })
}

/** Reserves space for a claimed file that has become longer, and keeps the claim. */
export async function extendLease(
  services: Services,
  { upload, kind, space }: UploadLease,
  bytes: number,
): Promise<UploadLease> {
  const { uid, userId } = upload
  if (!hasSpaceFor(await readFolderSpace(services.config.uploadsDir), 0, IMPORT_LIMITS.keptFreeBytes)) throw noSpace()
  return inRequestTransaction(services, async (transaction) => {
    const lockedUpload = await lockUpload(transaction, userId, uid)
    const { writingUntil } = (await findUploadSpace(transaction, uid)) ?? { writingUntil: null }
    if (lockedUpload === undefined || writingUntil?.getTime() !== space.writingUntil?.getTime()) throw uploadMissing()
    return { upload, kind, space: await reserve(services, transaction, uid, bytesWith(upload, kind, bytes)) }
  })
}

/** Stores how much of the file has arrived, and ends the claim. Undefined: the bytes that have arrived are those before. */
export async function endLease(
  services: Services,
  { upload, kind, space }: UploadLease,
  bytes: number | undefined,
): Promise<void> {
  const byteColumns = kind === 'archive' ? { archiveBytes: bytes } : { photoBytes: bytes }
  const changes = bytes === undefined ? {} : { ...byteColumns, reservedBytes: bytesWith(upload, kind, bytes) }
  await inRequestTransaction(services, async (transaction) => {
    await lockUpload(transaction, upload.userId, upload.uid)
    if (!(await finishWriting(transaction, space, changes)) && bytes !== undefined) throw uploadMissing()
  })
}

async function reserve(
  services: Services,
  transaction: Parameters<typeof lockReservedBytes>[0],
  uid: string,
  reservedBytes: number,
): Promise<UploadSpace> {
  if ((await lockReservedBytes(transaction, uid)) + reservedBytes > services.config.importTotalBytes) {
    throw new Refusal('uploads_full', 'Other archives use all the space for uploads.')
  }
  const writingUntil = new Date(services.now().getTime() + IMPORT_LIMITS.writingSeconds * 1_000)
  const space = { uid, reservedBytes, writingUntil }
  await saveUploadSpace(transaction, space)
  return space
}

/** Reserves space for the lists of an archive that is being split. The archive is refused if the other uploads leave no space. */
export async function reserveSplitBytes(
  services: Services,
  { uid, archiveBytes, photoBytes }: ImportUpload,
  splitBytes: number,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const otherBytes = await lockReservedBytes(transaction, uid)
    if (otherBytes + archiveBytes + photoBytes + splitBytes > services.config.importTotalBytes) {
      throw new ArchiveError('no_space', 'Other archives use the space for the lists of the archive.')
    }
    await saveSplitBytes(transaction, uid, splitBytes)
  })
}

export function receivedBytesOf({ archiveBytes, photoBytes }: ImportUpload, kind: UploadKind): number {
  return kind === 'archive' ? archiveBytes : photoBytes
}

/** Bytes that a claimed file may have. */
export function reservedFor({ upload, kind, space }: UploadLease): number {
  return space.reservedBytes - receivedBytesOf(upload, kind === 'archive' ? 'photos' : 'archive')
}

function bytesWith({ archiveBytes, photoBytes }: ImportUpload, kind: UploadKind, bytes: number): number {
  return bytes + (kind === 'archive' ? photoBytes : archiveBytes)
}

export function uploadMissing(): Refusal {
  return new Refusal('upload_missing', 'No archive is being uploaded.')
}

export function noSpace(cause?: unknown): Refusal {
  return new Refusal('no_space', 'The pod has no disk space for this file.', { cause })
}
