import { createHash, type KeyObject } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import type { Actor } from '../../../domain/moderation/actor.js'
import { auditContext } from '../../../domain/moderation/record-action.js'
import { newGuid } from '../../../domain/new-guid.js'
import { Refusal } from '../../../domain/refusals.js'
import {
  findUnfinishedImport,
  type Import,
  type ImportOptions,
  insertImport,
} from '../../../persistence/archives/imports.js'
import { inTransaction } from '../../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import type { Pod } from '../../../pod/pod.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import type { ImportingUser } from '../owner.js'
import { type ArchiveFile, openPlainFile } from '../reading/archive-file.js'
import { type ArchiveOwner, readArchiveOwner } from '../reading/archive-owner.js'
import { readPhotoNames, requireZipSize } from '../reading/archive-photos.js'
import { openSealedFile, type SealedPlace } from '../reading/sealed-file.js'
import { deleteSpool, type SpooledArchive, spoolArchive } from '../reading/spool-archive.js'
import { type ArchiveIdentity, allowsContent, identifyArchive } from './archive-identity.js'
import { foundCounts } from './count-outcomes.js'

export interface ImportRequest {
  readonly file: string
  readonly photosFile: string | undefined
  readonly user: ImportingUser
  readonly options: Pick<ImportOptions, 'contacts' | 'content' | 'settings' | 'profile'>
  /** The old network ID, typed by the owner; undefined: the account does not move. */
  readonly moveFrom: string | undefined
  readonly signal?: AbortSignal
}

type ImportRefusal = 'import_running' | 'old_address_wrong'

/** The private folder of an import; all processes of the pod share it. */
export function importFolder({ config }: Pick<Pod, 'config'>, { uid }: Pick<Import, 'uid'>): string {
  return join(config.uploadsDir, 'imports', uid)
}

/** The unfinished import of this file into an account: it continues instead of a new one. */
export async function findImportOfFile(pod: Pod, user: ImportingUser, file: string): Promise<Import | undefined> {
  const unfinished = await findUnfinishedImport(pod.db, user.userId)
  if (unfinished === undefined) return undefined
  const digest = createHash('sha256')
  for await (const chunk of createReadStream(file)) digest.update(chunk)
  return digest.digest('hex') === unfinished.sha256 ? unfinished : undefined
}

/** Splits the archive and stores a new import, which a worker or the command runs. */
export async function beginImport(pod: Pod, actor: Actor, request: ImportRequest): Promise<Import> {
  const { user, photosFile } = request
  if ((await findUnfinishedImport(pod.db, user.userId)) !== undefined) throw importRunning()
  const uid = newGuid()
  const folder = importFolder(pod, { uid })
  try {
    const spooled = await spoolArchive(await openPlainFile(request.file), {
      folder,
      maxBytes: pod.config.importBytes,
      ...(request.signal && { signal: request.signal }),
    })
    const owner = readArchiveOwner(spooled.values)
    const identity = await identifyOrRecord(pod, actor, owner, user)
    requireOldAddress(owner, request.moveFrom)
    if (photosFile !== undefined) {
      requireZipSize(await openPlainFile(photosFile), pod.config.importPhotoBytes)
      await copyFile(photosFile, join(folder, PHOTOS_FILE), constants.COPYFILE_FICLONE)
    }
    const photos = photosFile === undefined ? 'none' : 'plain'
    const facts = await readImportFacts(spooled, owner, photos)
    return await inTransaction(pod, (transaction) =>
      storeImport(pod, transaction, actor, { ...request, uid, key: owner.privateKey, identity, facts }),
    )
  } catch (error) {
    await deleteSpool(folder)
    throw error
  }
}

const PHOTOS_FILE = 'photos.zip'

/** The place of an uploaded file, which is encrypted. It is kept longer than the folder of the import. */
export function uploadedFile({ config }: Pick<Pod, 'config'>, uid: string, kind: 'archive' | 'photos'): SealedPlace {
  return { path: join(config.uploadsDir, 'imports', 'uploads', uid, kind), name: `${uid} ${kind}` }
}

function photosOf({ header }: Pick<Import, 'header'>): PhotosOfImport {
  if (header['photos'] === 'sealed' || header['photos'] === 'plain') return header['photos']
  return header['has_photos'] === true ? 'plain' : 'none' // as earlier versions have noted it
}

/** The zip of photos; undefined: there is none. */
export async function openPhotosOf(
  pod: Pick<Pod, 'config' | 'secrets'>,
  found: Pick<Import, 'uid' | 'header'>,
): Promise<ArchiveFile | undefined> {
  const photos = photosOf(found)
  if (photos === 'none') return undefined
  if (photos === 'plain') return openPlainFile(join(importFolder(pod, found), PHOTOS_FILE))
  return openSealedFile(pod, uploadedFile(pod, found.uid, 'photos'))
}

/** What an import needs of an archive besides its lists. It is kept as JSON between the check and the start. */
export interface ImportFacts extends Pick<Import, 'oldAddress' | 'header' | 'counts' | 'bytes' | 'sha256'> {
  readonly header: Readonly<Record<string, unknown>> & { readonly photos: PhotosOfImport }
}

/** `plain`: in the folder of the import; `sealed`: as it was uploaded. */
export type PhotosOfImport = 'none' | 'plain' | 'sealed'

export async function readImportFacts(
  spooled: SpooledArchive,
  owner: ArchiveOwner,
  photos: PhotosOfImport,
): Promise<ImportFacts> {
  const { values, bytes, sha256, counts: lists } = spooled
  const value = (name: string) => values.get(`user.${name}`)
  const names = await readPhotoNames(spooled, owner.profile)
  const header = {
    version: owner.version,
    profile: owner.profile,
    language: value('language'),
    auto_follow_back: value('auto_follow_back'),
    auto_follow_back_aspect: value('auto_follow_back_aspect'),
    settings: value('settings'),
    photos,
    lists,
  }
  return { oldAddress: owner.address, header, counts: foundCounts(spooled, names.size), bytes, sha256 }
}

/** The old network ID has to be typed: a move cannot be undone. */
export function requireOldAddress({ address }: Pick<ArchiveOwner, 'address'>, typed: string | undefined): void {
  if (typed === undefined || typed === address) return
  throw new Refusal<ImportRefusal>('old_address_wrong', `The archive is of ${address}, not of ${typed}.`)
}

export interface NewImport extends Pick<ImportRequest, 'user' | 'options' | 'moveFrom'> {
  readonly uid: string
  readonly key: KeyObject
  readonly identity: ArchiveIdentity
  readonly facts: ImportFacts
}

/** Stores an import, which a worker runs. Throws `import_running` if another one of the account is not finished. */
export async function storeImport(
  pod: Pick<Pod, 'now' | 'secrets'>,
  transaction: Knex.Transaction,
  actor: Actor,
  { uid, user, options, moveFrom, key, identity, facts }: NewImport,
): Promise<Import> {
  const isMove = moveFrom !== undefined && !['same', 'moved_here', 'closed'].includes(identity.state)
  const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const hasContent = options.content && allowsContent(identity.state, isMove)
  const inserted = await insertImport(transaction, {
    ...facts,
    uid,
    userId: user.userId,
    identity: identity.state,
    options: { ...options, move: isMove, content: hasContent },
    sealedKey: isMove ? pod.secrets.seal(pem, `user ${user.userId}`) : null,
    phase: 'aspects',
    createdAt: pod.now(),
  })
  if (inserted === undefined) throw importRunning()
  const entry = {
    ...auditContext(actor),
    action: 'archive.import',
    target: { type: 'person', guid: null, label: user.address },
    after: { from: facts.oldAddress, move: isMove },
  }
  await appendAuditEntry(transaction, entry, pod.now())
  return inserted
}

/** An archive with another key than the old account has may be an attack: the audit log has it. */
export async function identifyOrRecord(
  pod: Pod,
  actor: Actor,
  owner: Pick<ArchiveOwner, 'address' | 'publicKey'>,
  user: ImportingUser,
): Promise<ArchiveIdentity> {
  try {
    return await identifyArchive(pod, owner, user)
  } catch (error) {
    if (error instanceof ArchiveError && error.fault === 'key_mismatch') {
      const entry = {
        ...auditContext(actor),
        action: 'archive.refuse',
        target: { type: 'person', guid: null, label: user.address },
        after: { from: owner.address, reason: error.fault },
      }
      await inTransaction(pod, (transaction) => appendAuditEntry(transaction, entry, pod.now()))
    }
    throw error
  }
}

export function importRunning(): Refusal<ImportRefusal> {
  return new Refusal('import_running', 'Another import of this account is not finished.')
}
