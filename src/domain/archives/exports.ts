import {
  EXPORT_KINDS,
  type Export,
  type ExportKind,
  exportFile,
  findExpiredExports,
  findExport,
  findExportsOfUser,
  findRecentExports,
  insertExport,
  markDeleted,
  markExpired,
  updateDownload,
} from '../../persistence/archives/exports.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { newGuid } from '../new-guid.js'
import { Refusal } from '../refusals.js'
import { ARCHIVE_LIMITS } from './limits.js'
import { requireOriginalPod } from './require-original.js'

export { EXPORT_KINDS, type Export, type ExportKind, exportFile }

/** Requests an export. A worker creates it; the file of an older one of the same kind is deleted. */
export async function requestExport(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'now'>,
  viewer: Viewer,
  kind: ExportKind,
): Promise<Export> {
  requireOriginalPod(services)
  const now = services.now()
  const { userId } = viewer
  return inRequestTransaction(services, async (transaction) => {
    await transaction('users').where({ id: userId }).forUpdate()
    const recent = await findRecentExports(transaction, { userId, kind, since: new Date(now.getTime() - DAY_MS) })
    const row = await insertExport(transaction, { uid: newGuid(), userId, kind, createdAt: now })
    if (row === undefined) {
      throw new Refusal('export_running', 'An export of this kind is being made already.')
    }
    const [first] = recent
    if (first !== undefined && recent.length >= ARCHIVE_LIMITS.exportsADay) {
      const retryAfter = Math.ceil((first.createdAt.getTime() + DAY_MS - now.getTime()) / 1_000)
      const message = `At most ${ARCHIVE_LIMITS.exportsADay} exports of a kind are made a day.`
      throw new Refusal('too_many_exports', message, { details: { retryAfter } })
    }
    return row
  })
}

export async function listExports({ db }: Pick<Services, 'db'>, { userId }: Viewer): Promise<readonly Export[]> {
  return findExportsOfUser(db, userId)
}

export async function readExport({ db }: Pick<Services, 'db'>, { userId }: Viewer, uid: string): Promise<Export> {
  const accountExport = await findExport(db, userId, uid)
  if (accountExport === undefined) throw new Refusal('export_not_found', 'There is no export with this id.')
  return accountExport
}

/** The export with a file that can be read. */
export async function readFinishedExport(
  services: Pick<Services, 'db' | 'now'>,
  viewer: Viewer,
  uid: string,
): Promise<Export> {
  const accountExport = await readExport(services, viewer, uid)
  if (
    accountExport.state === 'expired' ||
    (accountExport.expiresAt !== null && accountExport.expiresAt <= services.now())
  ) {
    throw new Refusal('export_expired', 'The file of this export is deleted.')
  }
  if (accountExport.state !== 'ready') throw new Refusal('export_not_ready', 'The export is not finished.')
  return accountExport
}

/**
 * Notes in the audit log that a person downloads an export, and sends a mail: who has it can read everything, or even act as the
 * person. One entry and mail an hour: a download may come in many parts.
 */
export async function recordDownload(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'now'>,
  viewer: Viewer,
  { id, uid, kind }: Export,
  via: 'api' | 'console',
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    if (!(await updateDownload(transaction, id, services.now()))) return
    const person = await Person.query(transaction).findById(viewer.personId).throwIfNotFound()
    const entry = {
      actor: { guid: person.guid, name: person.address, role: 'member' as const },
      via,
      action: 'archive.download',
      target: { type: 'person', guid: person.guid, label: person.address },
      after: { kind, export: uid },
    }
    await appendAuditEntry(transaction, entry, services.now())
    await enqueueAccountMail(services, transaction, 'archive_downloaded', viewer.userId)
  })
}

/** Deletes an export with its file; a running one ends. */
export async function deleteExport(
  services: Pick<Services, 'db' | 'pictures'>,
  viewer: Viewer,
  uid: string,
  via: 'api' | 'console',
): Promise<void> {
  const accountExport = await readExport(services, viewer, uid)
  if (via === 'api') requireCopy(accountExport)
  await services.pictures.deleteExports([exportFile(accountExport)])
  await markDeleted(services.db, accountExport.id)
}

/** Throws for an export with the private key: no token requests, reads or deletes it. */
export function requireCopy({ kind }: Pick<Export, 'kind'>): void {
  if (kind !== 'archive') return
  throw new Refusal('page_only', 'The archive with the private key is on the page only.')
}

const EXPIRED_EXPORT_BATCH_SIZE = 100

/** Deletes the files whose time is over. */
export async function deleteExpiredExports(services: Pick<Services, 'db' | 'pictures' | 'now'>): Promise<void> {
  const expiredExports = await findExpiredExports(services.db, services.now(), EXPIRED_EXPORT_BATCH_SIZE)
  if (expiredExports.length === 0) return
  await services.pictures.deleteExports(expiredExports.map(exportFile))
  await markExpired(
    services.db,
    expiredExports.map(({ id }) => id),
  )
}
