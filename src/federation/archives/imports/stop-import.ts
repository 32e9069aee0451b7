import type { Knex } from 'knex'
import { requireOriginalPod } from '../../../domain/archives/require-original.js'
import { importedPhotoName } from '../../../domain/photos/imported-photos.js'
import { listPhotoFiles } from '../../../domain/photos/photos.js'
import { Refusal } from '../../../domain/refusals.js'
import { deleteChanges, type ImportChange, listChanges } from '../../../persistence/archives/import-changes.js'
import { insertImportedContacts } from '../../../persistence/archives/imported-people.js'
import {
  type ArchiveImport,
  cancelImportRow,
  listImportedPhotoNames,
  lockArchiveImport,
  setArchiveImportState,
} from '../../../persistence/archives/imports.js'
import { startSharing, stopReceiving, stopSharing } from '../../../persistence/contacts/contact-changes.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { Tag } from '../../../persistence/models/tag.js'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import type { ImportingUser } from '../owner.js'
import { deleteSpool } from '../reading/spool-archive.js'
import { importFolder } from './begin-import.js'

/** Phases whose changes can be undone. The move and what comes after it cannot. */
const BEFORE_MOVE: ReadonlySet<string> = new Set(['aspects', 'contacts', 'tags', 'blocks', 'photos'])

export function isCancellable({ state, phase }: Pick<ArchiveImport, 'state' | 'phase'>): boolean {
  return (state === 'running' || state === 'paused') && BEFORE_MOVE.has(phase)
}

/** Pauses a running import, or lets a paused one go on. Repeating it changes nothing. */
export async function setImportState(
  services: Services,
  target: Pick<ArchiveImport, 'userId' | 'uid'>,
  state: 'running' | 'paused',
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const { id } = await requireUnfinished(transaction, target)
    await setArchiveImportState(transaction, id, state)
  })
}

/** Cancels an import before the move, and undoes its changes. Nothing is sent, because nothing was sent before. */
export async function cancelImport(services: Services, user: ImportingUser, uid: string): Promise<void> {
  requireOriginalPod(services)
  const { userId } = user
  const files = await inRequestTransaction(services, async (transaction) => {
    const archiveImport = await requireUnfinished(transaction, { userId, uid })
    if (!isCancellable(archiveImport)) {
      throw new Refusal('import_beyond_cancel', 'The import can no longer be cancelled. Pause it instead.')
    }
    const names = await undoAll(transaction, user, archiveImport.id)
    await cancelImportRow(transaction, archiveImport.id, services.now())
    return names
  })
  await services.pictures.delete(files)
  await deleteSpool(importFolder(services, { uid }))
}

/** Undoes the changes of an import that fails before the move, unless another worker has claimed it. */
export async function undoImport(services: Services, { id, uid, userId, claimId }: ArchiveImport): Promise<void> {
  const files = await inRequestTransaction(services, async (transaction) => {
    const lockedImport = await lockArchiveImport(transaction, { userId, uid })
    if (lockedImport?.state !== 'running' || lockedImport.claimId !== claimId) return []
    const { personId } = await User.query(transaction).findById(userId).throwIfNotFound()
    return undoAll(transaction, { userId, personId }, id)
  })
  await services.pictures.delete(files)
}

const CHANGES_BATCH_SIZE = 500

type ChangedUser = Pick<ImportingUser, 'userId' | 'personId'>

/** Returns the files of the imported photos, which nothing refers to afterwards. */
async function undoAll(transaction: Knex.Transaction, user: ChangedUser, importId: number): Promise<readonly string[]> {
  const { guid } = await Person.query(transaction).findById(user.personId).throwIfNotFound()
  const names: string[] = []
  for await (const page of listImportedPhotoNames(transaction, importId, CHANGES_BATCH_SIZE, ['imported'])) {
    names.push(...page.map((name) => importedPhotoName(guid, name)))
  }
  for await (const changes of listChanges(transaction, importId, CHANGES_BATCH_SIZE)) {
    await undoChanges(transaction, user, changes)
  }
  await deleteChanges(transaction, importId)
  return names.flatMap((name) => listPhotoFiles(name))
}

/** Undoes a page of changes, the last one first: each kind with few statements. */
async function undoChanges(
  transaction: Knex.Transaction,
  { userId, personId }: ChangedUser,
  changes: readonly ImportChange[],
): Promise<void> {
  const changesOf = <Kind extends ImportChange['kind']>(...kinds: readonly Kind[]) =>
    changes.filter((change): change is Extract<ImportChange, { kind: Kind }> =>
      kinds.some((kind) => kind === change.kind),
    )
  const withPerson = (users: readonly { readonly userId: number }[]) =>
    users.map(({ userId: id }) => ({ userId: id, personId }))
  const withUser = (people: readonly { readonly personId: number }[]) =>
    people.map(({ personId: id }) => ({ userId, personId: id }))
  const idsOf = (people: readonly { readonly personId: number }[]) => people.map(({ personId: id }) => id)

  await transaction('blocks')
    .where({ userId })
    .whereIn('personId', idsOf(changesOf('block')))
    .delete()
  const restoredContacts = changesOf('ended_contact').map((contact) => ({
    ...contact,
    receiving: true,
    claimed: false,
  }))
  await insertImportedContacts(transaction, userId, restoredContacts)
  await startSharing(transaction, withPerson(changesOf('unshared')))
  await stopSharing(transaction, withPerson(changesOf('shared')))
  await stopReceiving(transaction, withUser(changesOf('contact')))
  for (const { personId: id, aspectIds } of changesOf('memberships')) {
    const contact = transaction('contacts').where({ userId, personId: id }).select('id')
    await transaction('aspectMemberships')
      .whereIn('contactId', contact)
      .whereIn('aspectId', [...aspectIds])
      .delete()
  }
  await transaction('claimedFollowers')
    .where({ userId })
    .whereIn('personId', idsOf(changesOf('claim')))
    .delete()
  const tags = changesOf('tag').map(({ name }) => name)
  if (tags.length > 0) await Tag.unfollowAll(transaction, userId, tags)
  // An aspect that the person has used in the meantime stays.
  await transaction('aspects')
    .whereIn(
      'id',
      changesOf('aspect').map(({ id }) => id),
    )
    .whereNotExists(transaction('aspectMemberships').whereRaw('aspect_id = aspects.id'))
    .delete()
}

async function requireUnfinished(
  transaction: Knex.Transaction,
  by: Pick<ArchiveImport, 'userId' | 'uid'>,
): Promise<ArchiveImport> {
  const archiveImport = await lockArchiveImport(transaction, by)
  if (archiveImport === undefined) throw new Refusal('import_not_found', 'There is no import with this id.')
  if (archiveImport.state === 'running' || archiveImport.state === 'paused') return archiveImport
  throw new Refusal('import_over', 'The import is over.')
}
