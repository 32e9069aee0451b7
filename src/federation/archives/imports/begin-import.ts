import { createHash, type KeyObject } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Actor } from '../../../domain/moderation/actor.js'
import { auditContext } from '../../../domain/moderation/record-action.js'
import { newGuid } from '../../../domain/new-guid.js'
import { Refusal } from '../../../domain/refusals.js'
import { hasCode } from '../../../errors/thrown.js'
import {
  type ArchiveImport,
  findUnfinishedImport,
  type ImportOptions,
  insertArchiveImport,
} from '../../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import type { Services } from '../../../services/services.js'
import type { ImportingUser } from '../owner.js'
import { type ArchiveFile, openPlainFile } from '../reading/archive-file.js'
import { readArchiveHeader } from '../reading/archive-header.js'
import { type ArchiveOwner, readArchiveOwner } from '../reading/archive-owner.js'
import { readPhotoNames, readPhotosZip, requireZipSize } from '../reading/archive-photos.js'
import { type EncryptedFilePath, openSealedFile } from '../reading/sealed-file.js'
import { deleteSpool, type SpooledArchive, spoolArchive } from '../reading/spool-archive.js'
import { type ArchiveIdentity, allowsContent, type ClaimedIdentity, identifyArchive } from './archive-identity.js'
import { listDistinctAspectNames } from './aspect-names.js'
import { countsOfFound } from './count-outcomes.js'

export interface ImportRequest {
  readonly file: string
  readonly photosFile: string | undefined
  readonly user: ImportingUser
  readonly options: Pick<ImportOptions, 'contacts' | 'content' | 'settings' | 'profile'>
  /** The old network ID, typed by the owner; undefined: the account does not move. */
  readonly moveFrom: string | undefined
  readonly signal?: AbortSignal
}

/** The private folder of an import; all processes of the pod share it. */
export function importFolder({ config }: Pick<Services, 'config'>, { uid }: Pick<ArchiveImport, 'uid'>): string {
  return join(config.uploadsDir, 'imports', uid)
}

/** The unfinished import of this file into an account: it continues instead of a new one. */
export async function findImportOfFile(
  services: Services,
  user: ImportingUser,
  file: string,
): Promise<ArchiveImport | undefined> {
  const unfinishedImport = await findUnfinishedImport(services.db, user.userId)
  if (unfinishedImport === undefined) return undefined
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(file)) digest.update(chunk)
  return digest.digest('hex') === unfinishedImport.sha256 ? unfinishedImport : undefined
}

/** Splits the archive and stores a new import, which a worker or the command runs. */
export async function beginImport(services: Services, actor: Actor, request: ImportRequest): Promise<ArchiveImport> {
  const { user, photosFile } = request
  if ((await findUnfinishedImport(services.db, user.userId)) !== undefined) throw importRunning()
  const uid = newGuid()
  const folder = importFolder(services, { uid })
  try {
    const spooled = await spoolArchive(await openPlainFile(request.file), {
      folder,
      maxBytes: services.config.importBytes,
      ...(request.signal && { signal: request.signal }),
    })
    const owner = readArchiveOwner(spooled.values)
    const identity = await identifyOrRecord(services, actor, owner, user)
    requireOldAddress(owner, request.moveFrom)
    if (photosFile !== undefined) {
      const zip = await openPlainFile(photosFile)
      requireZipSize(zip, services.config.importPhotoBytes)
      await readPhotosZip(zip, new Set()) // a damaged one is refused before anything changes
      await copyFile(photosFile, join(folder, PHOTOS_FILE), constants.COPYFILE_FICLONE)
    }
    const photos = photosFile === undefined ? 'none' : 'plain'
    const summary = await readArchiveSummary(spooled, owner, { photos, now: services.now() })
    return await inRequestTransaction(services, (transaction) =>
      storeImport(services, transaction, actor, { ...request, uid, key: owner.privateKey, identity, summary }),
    )
  } catch (error) {
    await deleteSpool(folder)
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
    throw new ArchiveError('no_space', 'The disk has no space for the archive.', { cause: error })
  }
}

const PHOTOS_FILE = 'photos.zip'

/** The place of an uploaded file, which is encrypted. It is kept longer than the folder of the import. */
export function uploadedFile(
  { config }: Pick<Services, 'config'>,
  uid: string,
  kind: 'archive' | 'photos',
): EncryptedFilePath {
  return { path: join(config.uploadsDir, 'imports', 'uploads', uid, kind), name: `${uid} ${kind}` }
}

function photosOf({ header }: Pick<ArchiveImport, 'header'>): PhotosOfImport {
  if (header['photos'] === 'sealed' || header['photos'] === 'plain') return header['photos']
  return header['has_photos'] === true ? 'plain' : 'none' // as earlier versions have noted it
}

/** The zip of photos; undefined: there is none. */
export async function openPhotosOf(
  services: Pick<Services, 'config' | 'secrets'>,
  found: Pick<ArchiveImport, 'uid' | 'header'>,
): Promise<ArchiveFile | undefined> {
  const photos = photosOf(found)
  if (photos === 'none') return undefined
  if (photos === 'plain') return openPlainFile(join(importFolder(services, found), PHOTOS_FILE))
  return openSealedFile(services, uploadedFile(services, found.uid, 'photos'))
}

/** The data of an archive that an import needs besides its lists. They are kept as JSON between the check and the start. */
export interface ArchiveSummary extends Pick<ArchiveImport, 'oldAddress' | 'header' | 'counts' | 'bytes' | 'sha256'> {
  readonly header: Readonly<Record<string, unknown>> & { readonly photos: PhotosOfImport }
}

/** `plain`: in the folder of the import; `sealed`: as it was uploaded. */
export type PhotosOfImport = 'none' | 'plain' | 'sealed'

export async function readArchiveSummary(
  spooled: SpooledArchive,
  owner: ArchiveOwner,
  { photos, now }: { readonly photos: PhotosOfImport; readonly now: Date },
): Promise<ArchiveSummary> {
  const { values, bytes, sha256, counts: lists } = spooled
  const members = readArchiveHeader(values, owner, now)
  const names = await readPhotoNames(spooled, members.profile ?? {})
  const header = {
    version: owner.version,
    ...members,
    aspect_names: await listDistinctAspectNames(spooled, owner),
    photos,
    lists,
  }
  return { oldAddress: owner.address, header, counts: countsOfFound(spooled, names.size), bytes, sha256 }
}

/** The old network ID has to be typed: a move cannot be undone. */
export function requireOldAddress({ address }: Pick<ArchiveOwner, 'address'>, typed: string | undefined): void {
  if (typed === undefined || typed === address) return
  throw new Refusal('old_address_wrong', `The archive is of ${address}, not of ${typed}.`)
}

export interface NewImport extends Pick<ImportRequest, 'user' | 'options' | 'moveFrom'> {
  readonly uid: string
  readonly key: KeyObject
  readonly identity: ArchiveIdentity
  readonly summary: ArchiveSummary
}

/** Stores an import, which a worker runs. Throws `import_running` if another one of the account is not finished. */
export async function storeImport(
  services: Pick<Services, 'secrets' | 'now'>,
  transaction: Knex.Transaction,
  actor: Actor,
  { uid, user, options, moveFrom, key, identity, summary }: NewImport,
): Promise<ArchiveImport> {
  const isMove = moveFrom !== undefined && !['same', 'moved_here', 'closed'].includes(identity.state)
  const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const hasContent = options.content && allowsContent(identity.state, isMove)
  const newImport = await insertArchiveImport(transaction, {
    ...summary,
    uid,
    userId: user.userId,
    identity: identity.state,
    options: { ...options, move: isMove, content: hasContent },
    sealedKey: isMove ? services.secrets.encrypt(pem, `user ${user.userId}`) : null,
    phase: 'aspects',
    createdAt: services.now(),
  })
  if (newImport === undefined) throw importRunning()
  const entry = {
    ...auditContext(actor),
    action: 'archive.import',
    target: { type: 'person', guid: null, label: user.address },
    after: { from: summary.oldAddress, move: isMove },
  }
  await appendAuditEntry(transaction, entry, services.now())
  return newImport
}

/** An archive with another key than the old account has may be an attack: the audit log has it. */
export async function identifyOrRecord(
  services: Services,
  actor: Actor,
  owner: ClaimedIdentity,
  user: ImportingUser,
): Promise<ArchiveIdentity> {
  try {
    return await identifyArchive(services, owner, user)
  } catch (error) {
    if (error instanceof ArchiveError && error.fault === 'key_mismatch') {
      const entry = {
        ...auditContext(actor),
        action: 'archive.refuse',
        target: { type: 'person', guid: null, label: user.address },
        after: { from: owner.address, reason: error.fault },
      }
      await inRequestTransaction(services, (transaction) => appendAuditEntry(transaction, entry, services.now()))
    }
    throw error
  }
}

export function importRunning(): Refusal {
  return new Refusal('import_running', 'Another import of this account is not finished.')
}
