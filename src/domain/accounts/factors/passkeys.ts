import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { findFactors } from '../../../persistence/accounts/factors.js'
import { isUniqueViolation } from '../../../persistence/database/errors.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { User } from '../../../persistence/models/user.js'
import { isWithinLength } from '../../../protocol/values.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import { endOtherSessions } from '../sessions.js'
import { FACTOR_LIMITS } from './limits.js'
import { makeChallenge, useChallenge } from './passkey-challenges.js'
import { replaceRecoveryCodes } from './recovery-codes.js'
import type { RelyingParty } from './relying-party.js'
import { type FactorDependencies, type FactorOwner, hasFactor, lockSecrets, requireRemovable } from './second-factor.js'
import { readCredential } from './webauthn.js'

export interface Passkey {
  readonly id: number
  readonly name: string
  readonly createdAt: Date
  readonly lastUsedAt: Date | null
  /** The authenticator keeps copies, for example in an account of its maker. */
  readonly backedUp: boolean
}

export async function listPasskeys({ db }: Pick<Services, 'db'>, userId: number): Promise<readonly Passkey[]> {
  return db('passkeys').where({ userId }).orderBy('id').select('id', 'name', 'createdAt', 'lastUsedAt', 'backedUp')
}

/** The options with which a browser creates a passkey, in the form of JSON that `parseCreationOptionsFromJSON` reads. */
export async function beginPasskey(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  { userId, address, sessionUid }: FactorOwner,
  party: RelyingParty,
): Promise<object> {
  const webauthnId = await findOrMakeWebauthnId(services, userId)
  const storedPasskeys = await services.db('passkeys').where({ userId }).select('credentialId', 'transports')
  return {
    rp: { id: party.id, name: party.name },
    user: { id: webauthnId.toString('base64url'), name: address, displayName: address },
    challenge: await makeChallenge(services, { purpose: 'add', browser: sessionUid }),
    // Ed25519, ECDSA with P-256, RSA: every authenticator has one of them.
    pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: 'public-key', alg })),
    timeout: FACTOR_LIMITS.challengeSeconds * 1_000,
    excludeCredentials: storedPasskeys.map(({ credentialId: id, transports }) => ({
      type: 'public-key',
      id,
      transports,
    })),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  }
}

/**
 * Stores the passkey that a browser has made. The other sessions end. Returns recovery codes if it is the first second factor of the
 * account.
 */
export async function addPasskey(
  services: FactorDependencies,
  owner: FactorOwner,
  party: RelyingParty,
  { name, response }: { readonly name: string; readonly response: string },
): Promise<readonly string[]> {
  const { userId, sessionUid } = owner
  const shownName = readName(name)
  const use = { purpose: 'add', browser: sessionUid, at: services.now() } as const
  const credential = await readCredential(response, party, (challenge) => useChallenge(services.db, challenge, use))
  if (credential === undefined) throw new Refusal('passkey_invalid', 'The passkey was not accepted. Try again.')
  try {
    return await inRequestTransaction(services, async (transaction) => {
      await lockSecrets(transaction, userId)
      const before = await findFactors(transaction, userId)
      if (before.passkeys >= FACTOR_LIMITS.passkeys) {
        throw new Refusal('too_many_passkeys', `An account may have at most ${FACTOR_LIMITS.passkeys} passkeys.`)
      }
      await transaction('passkeys').insert({ userId, name: shownName, createdAt: services.now(), ...credential })
      await endOtherSessions(transaction, owner)
      await enqueueAccountMail(services, transaction, 'passkey_added', userId)
      return hasFactor(before) ? [] : replaceRecoveryCodes(transaction, userId)
    })
  } catch (error) {
    if (!isUniqueViolation(error, 'passkeys_credential_id_key')) throw error
    throw new Refusal('passkey_known', 'This passkey is registered already.')
  }
}

/** Gives a passkey another name. */
export async function renamePasskey(
  { db }: Pick<Services, 'db'>,
  { userId, id }: { readonly userId: number; readonly id: number },
  name: string,
): Promise<void> {
  const rowCount = await db('passkeys')
    .where({ userId, id })
    .update({ name: readName(name) })
  if (rowCount === 0) throw passkeyMissing()
}

function readName(typedName: string): string {
  const name = typedName.trim()
  if (name !== '' && isWithinLength(name, FACTOR_LIMITS.passkeyNameCharacters) && !/\p{Cc}/u.test(name)) return name
  throw new Refusal('passkey_name_invalid', `A name must have 1 to ${FACTOR_LIMITS.passkeyNameCharacters} characters.`)
}

/** Removes a passkey. Without another second factor, the recovery codes go as well. The other sessions end. */
export async function removePasskey(services: FactorDependencies, owner: FactorOwner, id: number): Promise<void> {
  const { userId } = owner
  await inRequestTransaction(services, async (transaction) => {
    await lockSecrets(transaction, userId)
    const deletedCount = await transaction('passkeys').where({ userId, id }).delete()
    if (deletedCount === 0) throw passkeyMissing()
    if (!hasFactor(await findFactors(transaction, userId))) {
      requireRemovable(services, owner)
      await transaction('recovery_codes').where({ userId }).delete()
    }
    await endOtherSessions(transaction, owner)
    await enqueueAccountMail(services, transaction, 'passkey_removed', userId)
  })
}

async function findOrMakeWebauthnId(
  services: Pick<Services, 'db' | 'requestContext'>,
  userId: number,
): Promise<Buffer> {
  return inRequestTransaction(services, async (transaction: Knex.Transaction) => {
    await User.lock(transaction, userId)
    const user = await User.query(transaction).findById(userId).throwIfNotFound()
    const webauthnId = user.webauthnId ?? randomBytes(64)
    if (user.webauthnId === null) await user.$query(transaction).patch({ webauthnId })
    return webauthnId
  })
}

function passkeyMissing(): Refusal {
  return new Refusal('passkey_missing', 'You have no such passkey.')
}
