import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { decryptPrivateKey } from '../../domain/accounts/private-keys.js'
import { findLocalWriters, storeSignatures } from '../../persistence/interactions/kept-signatures.js'
import { UserSecrets } from '../../persistence/models/user.js'
import { listElements } from '../../protocol/entities/relayable-elements.js'
import type { Services } from '../../services/services.js'
import type { OutgoingRelayable } from './relayable-entities.js'

interface AuthorOfRelayable {
  readonly id: number
  readonly isLocal: boolean
  /** The signature of the envelope covers it. */
  readonly isSigner: boolean
}

/**
 * Signs a relayable that was stored without a signature. The signature is stored, so that all pods get the same one. Relayables of local
 * users have none after a take-over. An account that has moved away signs with its old network ID. Undefined: this pod has no key for it,
 * and it is not sent.
 */
export async function signStoredRelayable<Stored extends OutgoingRelayable>(
  { crypto, secrets }: Pick<Services, 'crypto' | 'secrets'>,
  db: Knex,
  entity: Stored,
  author: AuthorOfRelayable,
): Promise<Stored | undefined> {
  if (entity.author_signature !== undefined || author.isSigner) return entity
  const signer = author.isLocal
    ? { id: author.id, address: entity.author }
    : (await findLocalWriters(db, entity.type, [entity.guid])).get(entity.guid)
  if (signer === undefined) return undefined
  const userSecrets = await UserSecrets.findByPerson(db, signer.id)
  if (userSecrets === undefined) return undefined
  const key = keyOf(secrets, userSecrets)
  if (key === undefined) return undefined
  return addSignature({ crypto, db }, { ...entity, author: signer.address }, key)
}

/** Signs a relayable with the key of its author, and stores the signature unless there is one. */
export async function addSignature<Stored extends OutgoingRelayable>(
  { crypto, db }: Pick<Services, 'db' | 'crypto'>,
  entity: Stored,
  key: KeyObject,
): Promise<Stored> {
  const signature = await crypto.signRelayable(entity, key)
  const elements = listElements(entity)
  await storeSignatures(db, entity.type, [{ guid: entity.guid, signature, elements }])
  return { ...entity, author_signature: signature, elements }
}

/** Undefined: the old pod had no usable key of the account. */
function keyOf(secrets: Services['secrets'], { userId, sealedPrivateKey }: UserSecrets): KeyObject | undefined {
  try {
    return decryptPrivateKey(secrets, `user ${userId}`, sealedPrivateKey)
  } catch {
    return undefined
  }
}
