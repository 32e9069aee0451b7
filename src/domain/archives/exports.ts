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
import { inTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { newGuid } from '../new-guid.js'
import { Refusal } from '../refusals.js'
import { ARCHIVE_LIMITS } from './limits.js'

export { EXPORT_KINDS, type Export, type ExportKind, exportFile }

type ExportRefusal =
  | 'page_only'
  | 'export_not_found'
  | 'export_running'
  | 'export_not_ready'
  | 'export_expired'
  | 'too_many_exports'

const DAY_MS = 24 * 60 * 60 * 1_000

/** Requests an export. A worker makes it; the file of an older one of the same kind goes. */
export async function requestExport(
  pod: Pick<Pod, 'db' | 'now' | 'requestContext'>,
  viewer: Viewer,
  kind: ExportKind,
): Promise<Export> {
  const now = pod.now()
  const { userId } = viewer
  return inTransaction(pod, async (transaction) => {
    await transaction('users').where({ id: userId }).forUpdate()
    const recent = await findRecentExports(transaction, { userId, kind, since: new Date(now.getTime() - DAY_MS) })
    const row = await insertExport(transaction, { uid: newGuid(), userId, kind, createdAt: now })
    if (row === undefined) {
      throw new Refusal<ExportRefusal>('export_running', 'An export of this kind is being made already.')
    }
    const [first] = recent
    if (first !== undefined && recent.length >= ARCHIVE_LIMITS.exportsADay) {
      const retryAfter = Math.ceil((first.createdAt.getTime() + DAY_MS - now.getTime()) / 1_000)
      const message = `At most ${ARCHIVE_LIMITS.exportsADay} exports of a kind are made a day.`
      throw new Refusal<ExportRefusal>('too_many_exports', message, { details: { retryAfter } })
    }
    return row
  })
}

export async function listExports({ db }: Pick<Pod, 'db'>, { userId }: Viewer): Promise<readonly Export[]> {
  return findExportsOfUser(db, userId)
}

export async function readExport({ db }: Pick<Pod, 'db'>, { userId }: Viewer, uid: string): Promise<Export> {
  const accountExport = await findExport(db, userId, uid)
  if (accountExport === undefined)
    throw new Refusal<ExportRefusal>('export_not_found', 'There is no export with this id.')
  return accountExport
}

/** The export with a file that can be read. */
export async function readFinishedExport(pod: Pick<Pod, 'db' | 'now'>, viewer: Viewer, uid: string): Promise<Export> {
  const accountExport = await readExport(pod, viewer, uid)
  if (accountExport.state === 'expired' || (accountExport.expiresAt !== null && accountExport.expiresAt <= pod.now())) {
    throw new Refusal<ExportRefusal>('export_expired', 'The file of this export is deleted.')
  }
  if (accountExport.state !== 'ready')
    throw new Refusal<ExportRefusal>('export_not_ready', 'The export is not finished.')
  return accountExport
}

/**
 * Notes in the audit log that a person downloads an export, and sends a mail: who has it can read everything, or even act as the
 * person. One entry and mail an hour: a download may come in many parts.
 */
export async function recordDownload(
  pod: Pick<Pod, 'db' | 'now' | 'requestContext' | 'jobs' | 'config'>,
  viewer: Viewer,
  { id, uid, kind }: Export,
  via: 'api' | 'console',
): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    if (!(await updateDownload(transaction, id, pod.now()))) return
    const person = await Person.query(transaction).findById(viewer.personId).throwIfNotFound()
    const entry = {
      actor: { guid: person.guid, name: person.address, role: 'member' as const },
      via,
      action: 'archive.download',
      target: { type: 'person', guid: person.guid, label: person.address },
      after: { kind, export: uid },
    }
    await appendAuditEntry(transaction, entry, pod.now())
    await enqueueAccountMail(pod, transaction, 'archive_downloaded', viewer.userId)
  })
}

/** Deletes an export with its file; a running one ends. */
export async function deleteExport(
  pod: Pick<Pod, 'db' | 'pictures'>,
  viewer: Viewer,
  uid: string,
  via: 'api' | 'console',
): Promise<void> {
  const accountExport = await readExport(pod, viewer, uid)
  if (via === 'api') requireCopy(accountExport)
  await pod.pictures.deleteExports([exportFile(accountExport)])
  await markDeleted(pod.db, accountExport.id)
}

/** Throws for an export with the private key: no token requests, reads or deletes it. */
export function requireCopy({ kind }: Pick<Export, 'kind'>): void {
  if (kind !== 'archive') return
  throw new Refusal<ExportRefusal>('page_only', 'The archive with the private key is on the page only.')
}

const EXPIRED_EXPORT_BATCH_SIZE = 100

/** Deletes the files whose time is over. */
export async function deleteExpiredExports(pod: Pick<Pod, 'db' | 'now' | 'pictures'>): Promise<void> {
  const expired = await findExpiredExports(pod.db, pod.now(), EXPIRED_EXPORT_BATCH_SIZE)
  if (expired.length === 0) return
  await pod.pictures.deleteExports(expired.map(exportFile))
  await markExpired(
    pod.db,
    expired.map(({ id }) => id),
  )
}
