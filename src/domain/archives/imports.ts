import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import {
  type AnnouncedMove,
  findSilentContacts,
  listAnnouncedMoves,
  listWaitingPods,
  type SilentContact,
  type WaitingPod,
} from '../../persistence/archives/account-moves.js'
import {
  findLastUpload,
  type ListedUpload,
  listReceivedUploads,
  type ReceivedUpload,
} from '../../persistence/archives/import-uploads.js'
import { findImportOfUser, findImportsOfUser, type ListedImport } from '../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

export type { ListedImport, ReceivedUpload }

/** Days after a move, when a contact of the archive counts as silent. */
const SILENT_DAYS = 14

/** Uploaded archives of the viewer that wait for their start, and imports, each newest first. */
export async function listImports(
  { db }: Pick<Services, 'db'>,
  { userId }: Viewer,
): Promise<{ readonly uploads: readonly ReceivedUpload[]; readonly imports: readonly ListedImport[] }> {
  const uploads = await listReceivedUploads(db, userId)
  return { uploads, imports: await findImportsOfUser(db, userId) }
}

export async function getArchiveImport(
  { db }: Pick<Services, 'db'>,
  { userId }: Viewer,
  uid: string,
): Promise<ListedImport> {
  const accountImport = await findImportOfUser(db, { userId, uid })
  if (accountImport === undefined) throw new Refusal('import_not_found', 'There is no import with this id.')
  return accountImport
}

/** A move of the viewer to this account, the pods that do not know it yet, and the contacts from whom nothing has come. */
export interface MoveOfViewer {
  readonly move: AnnouncedMove
  readonly pods: readonly WaitingPod[]
  readonly silent: readonly SilentContact[]
}

/** Imports, the last upload and moves for the page of the viewer. */
export async function listImportPage(
  services: Pick<Services, 'db' | 'now'>,
  { userId, personId }: Viewer,
): Promise<{
  readonly imports: readonly ListedImport[]
  readonly upload: ListedUpload | undefined
  readonly moves: readonly MoveOfViewer[]
}> {
  const { db } = services
  const moves = await listAnnouncedMoves(db, { waiting: false, personId })
  const pods = moves.length === 0 ? [] : await listWaitingPods(db, { personId })
  const before = new Date(services.now().getTime() - SILENT_DAYS * DAY_MS)
  const silent = moves.length === 0 ? [] : await findSilentContacts(db, userId, before)
  return {
    imports: await findImportsOfUser(db, userId),
    upload: await findLastUpload(db, userId),
    moves: moves.map((move, index) => ({
      move,
      pods: pods.filter(({ oldAddress }) => oldAddress === move.oldAddress),
      silent: index === moves.length - 1 ? silent : [], // contacts belong to the account, not to one move
    })),
  }
}

/** Sends the contact entity again to a contact from whom nothing has come since the move. */
export async function shareAgain(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'now'>,
  { userId, personId: ownPersonId }: Viewer,
  personGuid: string,
): Promise<void> {
  const before = new Date(services.now().getTime() - SILENT_DAYS * DAY_MS)
  await inRequestTransaction(services, async (transaction) => {
    const contact = (await findSilentContacts(transaction, userId, before)).find(({ guid }) => guid === personGuid)
    if (contact === undefined) return
    const record = { record: 'contact', userId, personId: contact.personId, sharing: true, blocking: false } as const
    await enqueueJobs(services, transaction, [newDispatchJob(ownPersonId, record)])
  })
}
