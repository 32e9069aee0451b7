import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, copyFile } from 'node:fs/promises'
import { join } from 'node:path'
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
import { type ArchiveOwner, readArchiveOwner } from '../reading/archive-owner.js'
import { readPhotoNames, requireZipSize } from '../reading/archive-photos.js'
import { deleteSpool, spoolArchive } from '../reading/spool-archive.js'
import { type ArchiveIdentity, allowsContent, identifyArchive } from './archive-identity.js'
import { foundCounts } from './count-outcomes.js'

export interface ImportRequest {
  readonly file: string
  readonly photosFile: string | undefined
  readonly user: ImportingUser
  readonly options: Pick<ImportOptions, 'settings' | 'profile'>
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
  const { user, file, photosFile, moveFrom } = request
  if ((await findUnfinishedImport(pod.db, user.userId)) !== undefined) throw importRunning()
  const uid = newGuid()
  const folder = importFolder(pod, { uid })
  try {
    const spooled = await spoolArchive(file, {
      folder,
      maxBytes: pod.config.importBytes,
      ...(request.signal && { signal: request.signal }),
    })
    const owner = readArchiveOwner(spooled.values)
    const identity = await identifyOrRecord(pod, actor, owner, user)
    if (moveFrom !== undefined && moveFrom !== owner.address) {
      throw new Refusal<ImportRefusal>('old_address_wrong', `The archive is of ${owner.address}, not of ${moveFrom}.`)
    }
    if (photosFile !== undefined) {
      await requireZipSize(photosFile, pod.config.importPhotoBytes)
      await copyFile(photosFile, join(folder, PHOTOS_FILE), constants.COPYFILE_FICLONE)
    }
    const photos = await readPhotoNames(spooled, owner.profile)
    const counts = foundCounts(spooled, photos.size)
    const { values, bytes, sha256, counts: lists } = spooled
    return await storeImport(pod, actor, request, { uid, owner, identity, counts, lists, values, bytes, sha256 })
  } catch (error) {
    await deleteSpool(folder)
    throw error
  }
}

export const PHOTOS_FILE = 'photos.zip'

interface NewImportFacts {
  readonly uid: string
  readonly owner: ArchiveOwner
  readonly identity: ArchiveIdentity
  readonly counts: Import['counts']
  /** Lines of each list. */
  readonly lists: Readonly<Record<string, number>>
  readonly values: ReadonlyMap<string, unknown>
  readonly bytes: number
  readonly sha256: string
}

async function storeImport(
  pod: Pod,
  actor: Actor,
  { user, options, moveFrom, photosFile }: ImportRequest,
  { uid, owner, identity, counts, lists, values, bytes, sha256 }: NewImportFacts,
): Promise<Import> {
  const moves = moveFrom !== undefined && !['same', 'moved_here', 'closed'].includes(identity.state)
  const value = (name: string) => values.get(`user.${name}`)
  const header = {
    version: owner.version,
    profile: owner.profile,
    language: value('language'),
    auto_follow_back: value('auto_follow_back'),
    auto_follow_back_aspect: value('auto_follow_back_aspect'),
    has_photos: photosFile !== undefined,
    lists,
  }
  const key = owner.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  return inTransaction(pod, async (transaction) => {
    const inserted = await insertImport(transaction, {
      uid,
      userId: user.userId,
      oldAddress: owner.address,
      identity: identity.state,
      options: { ...options, move: moves, content: allowsContent(identity.state, moves) },
      header,
      sealedKey: moves ? pod.secrets.seal(key, `user ${user.userId}`) : null,
      bytes,
      sha256,
      phase: 'aspects',
      counts,
      createdAt: pod.now(),
    })
    if (inserted === undefined) throw importRunning()
    const entry = {
      ...auditContext(actor),
      action: 'archive.import',
      target: { type: 'person', guid: null, label: user.address },
      after: { from: owner.address, move: moves },
    }
    await appendAuditEntry(transaction, entry, pod.now())
    return inserted
  })
}

/** An archive with another key than the old account has may be an attack: the audit log has it. */
async function identifyOrRecord(
  pod: Pod,
  actor: Actor,
  owner: ArchiveOwner,
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

function importRunning(): Refusal<ImportRefusal> {
  return new Refusal('import_running', 'Another import of this account is not finished.')
}
