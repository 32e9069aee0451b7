import { mkdir, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
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
import { inTransaction } from '../../../persistence/database/transactions.js'
import type { Pod } from '../../../pod/pod.js'
import { importFolder, importRunning, uploadedFile } from '../imports/begin-import.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ImportingUser } from '../owner.js'
import { writeSealed } from '../reading/sealed-file.js'
import { deleteSpool } from '../reading/spool-archive.js'
import {
  arrivedBytes,
  type ClaimedPlace,
  claimPlace,
  endClaim,
  extendPlace,
  noSpace,
  reservedFor,
  type UploadKind,
  type UploadRefusal,
  uploadMissing,
} from './upload-space.js'

const DAY_MS = 24 * 60 * 60_000

/** Throws unless members may import archives themselves. */
export function requireImportsOn({ config }: Pick<Pod, 'config'>): void {
  if (config.imports === 'on') return
  throw new Refusal<UploadRefusal>('imports_off', 'On this pod only its operator imports archives.')
}

/** Begins an upload. Only one of an account is open at a time, and only so many archives a day are checked. */
export async function beginUpload(pod: Pod, { userId }: ImportingUser): Promise<ImportUpload> {
  requireImportsOn(pod)
  const now = pod.now()
  if ((await findUnfinishedImport(pod.db, userId)) !== undefined) throw importRunning()
  const today = await countUploadsSince(pod.db, userId, new Date(now.getTime() - DAY_MS))
  if (today >= IMPORT_LIMITS.checksADay) {
    throw new Refusal<UploadRefusal>(
      'too_many_checks',
      `At most ${IMPORT_LIMITS.checksADay} archives a day are checked.`,
    )
  }
  const upload = await inTransaction(pod, (transaction) =>
    insertUpload(transaction, { uid: newGuid(), userId, createdAt: now }),
  )
  if (upload === undefined) throw new Refusal<UploadRefusal>('upload_running', 'An uploaded archive is not finished.')
  await mkdir(dirname(uploadedFile(pod, upload.uid, 'archive').path), { recursive: true, mode: 0o700 })
  return upload
}

/** Stores a whole file of an upload, encrypted. */
export async function storeUploadedFile(
  pod: Pod,
  { uid, userId }: ImportUpload,
  kind: UploadKind,
  source: AsyncIterable<Buffer>,
): Promise<void> {
  const place = { userId, uid, kind, offset: 0, bytes: 0 }
  await writePart(pod, await claimPlace(pod, place), 0, source)
}

/**
 * Stores a part of a file behind those that have arrived. Resolves with the bytes that have arrived then. A part at another offset is
 * refused, so that a script can go on after a break.
 */
export async function storeUploadedPart(
  pod: Pod,
  { userId }: ImportingUser,
  { kind, offset }: { readonly kind: UploadKind; readonly offset: number },
  part: Buffer,
): Promise<number> {
  const { uid } = await requireOpenUpload(pod, userId)
  const place = await claimPlace(pod, { userId, uid, kind, offset, bytes: offset + part.length })
  return writePart(pod, place, offset, asSource(part))
}

async function* asSource(part: Buffer): AsyncGenerator<Buffer> {
  yield part
}

/** How many bytes of a file have arrived. */
export async function countArrivedBytes(pod: Pod, { userId }: ImportingUser, kind: UploadKind): Promise<number> {
  const upload = await requireOpenUpload(pod, userId)
  return arrivedBytes(upload, kind)
}

async function writePart(
  pod: Pod,
  claimed: ClaimedPlace,
  offset: number,
  source: AsyncIterable<Buffer>,
): Promise<number> {
  const { upload, kind } = claimed
  const most = kind === 'archive' ? pod.config.importBytes : pod.config.importPhotoBytes
  let place = claimed
  const extend = async (bytes: number) => {
    if (bytes > most) throw new Refusal<UploadRefusal>('too_large', 'The file is larger than this pod accepts.')
    if (bytes > reservedFor(place)) place = await extendPlace(pod, place, bytes + IMPORT_LIMITS.partBytes)
  }
  let arrived: number | undefined
  try {
    arrived = await writeSealed(pod, uploadedFile(pod, upload.uid, kind), offset, counted(source, offset, extend))
  } catch (error) {
    await endClaim(pod, place, undefined)
    if (hasCode(error, 'ENOSPC', 'EDQUOT')) throw noSpace(error)
    if (hasCode(error, 'ENOENT')) throw uploadMissing() // dropped meanwhile
    throw error
  }
  await endClaim(pod, place, arrived)
  return arrived
}

async function* counted(
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
export async function requestCheck(pod: Pod, { userId }: ImportingUser): Promise<void> {
  const { uid } = await requireOpenUpload(pod, userId)
  await inTransaction(pod, async (transaction) => {
    const upload = await lockUpload(transaction, userId, uid)
    if (upload?.state !== 'uploading' || upload.archiveBytes === 0) throw uploadMissing()
    await changeUpload(transaction, upload.id, { state: 'uploaded', checkAt: pod.now() })
  })
}

/** Deletes an upload that has not become an import, with its files. It still counts as a check of the day. */
export async function dropUpload(pod: Pod, { userId }: ImportingUser): Promise<void> {
  const open = await findOpenUpload(pod.db, userId)
  if (open === undefined) return
  const isDropped = await inTransaction(pod, async (transaction) => {
    const upload = await lockUpload(transaction, userId, open.uid)
    if (upload === undefined || upload.state === 'started') return false
    if (upload.state === 'uploading') await deleteUpload(transaction, upload.id)
    else await changeUpload(transaction, upload.id, { state: 'expired', sealedKey: null })
    return true
  })
  if (!isDropped) return
  await deleteUploadedFiles(pod, open.uid)
  await deleteSpool(importFolder(pod, open))
}

/** Deletes the uploaded files. */
export async function deleteUploadedFiles(pod: Pick<Pod, 'config'>, uid: string): Promise<void> {
  await rm(dirname(uploadedFile(pod, uid, 'archive').path), { recursive: true, force: true })
}

async function requireOpenUpload({ db }: Pick<Pod, 'db'>, userId: number): Promise<ImportUpload> {
  const open = await findOpenUpload(db, userId)
  if (open === undefined) throw uploadMissing()
  return open
}
