import { createPrivateKey, createPublicKey } from 'node:crypto'
import type { Actor } from '../../../domain/moderation/actor.js'
import { Refusal } from '../../../domain/refusals.js'
import { changeUpload, findOpenUpload, lockUpload } from '../../../persistence/archives/import-uploads.js'
import type { ArchiveImport, ImportOptions } from '../../../persistence/archives/imports.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { parseAddress } from '../../../protocol/address.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { allowsContent } from '../imports/archive-identity.js'
import { type ArchiveSummary, identifyOrRecord, requireOldAddress, storeImport } from '../imports/begin-import.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ImportingUser } from '../owner.js'
import { requireImportsOn } from './receive-upload.js'

interface ImportChoices extends Pick<ImportOptions, 'contacts' | 'content' | 'settings' | 'profile'> {
  readonly move: boolean
  /** The old network ID, as it was typed. */
  readonly oldAddress: string
}

export interface ImportStart {
  readonly choices: ImportChoices
  /** Checks that the owner of an old account of this pod, by its user name, is the same person: the key alone may be stolen. */
  proveOldAccount(username: string): Promise<boolean>
}

/** Starts the import of the checked archive; a worker runs it. */
export async function startImport(
  services: Services,
  actor: Actor,
  user: ImportingUser,
  { choices, proveOldAccount }: ImportStart,
): Promise<ArchiveImport> {
  requireImportsOn(services)
  const upload = await findOpenUpload(services.db, user.userId)
  if (upload?.state !== 'checked' || upload.sealedKey === null || !isFresh(upload.checkedAt, services.now())) {
    throw new Refusal('check_needed', 'The archive has to be checked first: upload it again.')
  }
  const summary = upload.facts as ArchiveSummary // stored by the check
  const key = createPrivateKey(services.secrets.decrypt(upload.sealedKey, `user ${user.userId}`))
  const owner = { address: summary.oldAddress, publicKey: createPublicKey(key) }
  const identity = await identifyOrRecord(services, actor, owner, user).catch((error: unknown) => {
    throw error instanceof ArchiveError ? new Refusal(error.fault, error.message, { cause: error }) : error
  })
  const { oldAddress, move, ...options } = choices
  const typedAddress = parseAddress(oldAddress)
  if (move && typedAddress === undefined) throw new Refusal('old_address_missing', 'Type the old network ID.')
  if (move) requireOldAddress(owner, typedAddress)
  if (options.content && !move && !allowsContent(identity.state, false) && identity.state !== 'closed') {
    throw new Refusal('content_needs_move', 'Posts, comments and likes are imported only with a move.')
  }
  if (identity.state === 'local' && !(await proveOldAccount(owner.address.split('@')[0] ?? ''))) {
    throw new Refusal('old_account_unproven', 'The password or the code of the old account is wrong.')
  }
  return inRequestTransaction(services, async (transaction) => {
    const lockedUpload = await lockUpload(transaction, user.userId, upload.uid)
    if (lockedUpload?.state !== 'checked') throw new Refusal('check_needed', 'The archive has to be checked first.')
    await changeUpload(transaction, upload.id, { state: 'started', sealedKey: null })
    const moveFrom = move ? owner.address : undefined
    return storeImport(services, transaction, actor, {
      uid: upload.uid,
      user,
      options,
      moveFrom,
      key,
      identity,
      summary,
    })
  })
}

function isFresh(checkedAt: Date | null, now: Date): boolean {
  return checkedAt !== null && now.getTime() - checkedAt.getTime() < IMPORT_LIMITS.checkDays * DAY_MS
}
