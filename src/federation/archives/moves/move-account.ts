import { createPublicKey, type KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { closeMovedPerson } from '../../../domain/accounts/closing/close-moved.js'
import { loadPrivateKey } from '../../../domain/accounts/private-keys.js'
import { movePerson } from '../../../domain/people/move-person.js'
import { type AccountMove, findMoveOfPerson, insertMove } from '../../../persistence/archives/account-moves.js'
import { Person } from '../../../persistence/models/person.js'
import { ArchiveError } from '../../../protocol/archives/archive-fault.js'
import { writeEntity } from '../../../protocol/entities/entity-xml.js'
import type { AccountMigrationEntity } from '../../../protocol/entities/people.js'
import type { Services } from '../../../services/services.js'
import { profileEntity } from '../../outbound/person-entities.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { ImportingUser } from '../owner.js'
import { isSameKey } from '../reading/archive-owner.js'

export interface MoveRequest {
  readonly user: ImportingUser
  readonly oldAddress: string
  readonly oldKey: KeyObject
  /** Where the photos of the account are now; undefined: none were imported. */
  readonly remotePhotoPath: string | undefined
}

/**
 * Signs the migration twice: with the inner signature by the new key, as the network does, and by the old key for Friendica, which
 * verifies that one. Both envelopes are signed by the old key, which is not needed afterwards.
 */
export async function signMove(
  services: Services,
  { user, oldAddress, oldKey, remotePhotoPath }: MoveRequest,
): Promise<Omit<AccountMove, 'oldPersonId'>> {
  const profile = await profileEntity(services, user.personId)
  if (profile === undefined) throw new Error(`The account ${user.username} has no profile.`)
  const move = { from: oldAddress, to: user.address }
  const newKey = await loadPrivateKey(services, user.personId)
  const sign = async (signature: string) => {
    const entity: AccountMigrationEntity = {
      type: 'account_migration',
      author: oldAddress,
      profile,
      signature,
      old_identity: oldAddress,
      ...(remotePhotoPath !== undefined && { remote_photo_path: remotePhotoPath }),
    }
    return services.crypto.signEnvelope(writeEntity(entity), oldAddress, oldKey)
  }
  const signature = await services.crypto.signMigration(move, newKey)
  const announceUntil = new Date(services.now())
  announceUntil.setUTCFullYear(announceUntil.getUTCFullYear() + IMPORT_LIMITS.announceYears)
  return {
    oldAddress,
    newPersonId: user.personId,
    signature,
    remotePhotoPath: remotePhotoPath ?? null,
    envelope: await sign(signature),
    envelopeFriendica: await sign(await services.crypto.signMigration(move, oldKey)),
    announceUntil,
  }
}

/**
 * Whether a move is applied already, and the old account if this pod knows it. Throws an `ArchiveError` if it belongs to another user or
 * has moved to another account: it may have become known since the import began.
 */
async function requireMovable(
  db: Knex,
  { oldAddress, oldKey, newPersonId }: Pick<MoveRequest, 'oldAddress' | 'oldKey'> & Pick<AccountMove, 'newPersonId'>,
): Promise<{ readonly isApplied: boolean; readonly old: Person | undefined }> {
  const old = await Person.query(db).findOne({ address: oldAddress }).forNoKeyUpdate()
  if (old !== undefined && !isSameKey(createPublicKey(oldKey), old.publicKey)) {
    throw new ArchiveError('key_mismatch', `The key of the archive is not the key of ${oldAddress}.`)
  }
  const before = await findMoveOfPerson(db, oldAddress)
  const isDecided = before !== undefined && (before.isProven || old === undefined)
  if (isDecided && Number(before.newPersonId) !== newPersonId) {
    throw new ArchiveError('moved_elsewhere', `${oldAddress} has moved to another account.`)
  }
  return { isApplied: isDecided, old }
}

/** Closes the old account on this pod and moves everything that refers to it. An account that this pod does not know has only its row. */
export async function applyMove(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  { oldKey, ...move }: Omit<AccountMove, 'oldPersonId'> & Pick<MoveRequest, 'oldKey'>,
  now: Date,
): Promise<void> {
  const { isApplied, old } = await requireMovable(transaction, { ...move, oldKey })
  if (isApplied) return
  await insertMove(transaction, { ...move, oldPersonId: old?.id ?? null })
  if (old === undefined) return
  await movePerson(services, transaction, { from: old.id, to: move.newPersonId })
  await closeMovedPerson(services, transaction, old, now)
}
