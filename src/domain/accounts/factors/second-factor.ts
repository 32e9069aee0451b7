import type { Knex } from 'knex'
import { type Factors, findFactors } from '../../../persistence/accounts/factors.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import type { Role } from '../../../persistence/models/user.js'
import { UserSecrets } from '../../../persistence/models/user.js'
import type { SecretOwner, Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import { endOtherSessions } from '../sessions.js'
import { FACTOR_LIMITS } from './limits.js'
import { replaceRecoveryCodes, useRecoveryCode } from './recovery-codes.js'
import { findTotpStep, makeTotpSecret } from './totp.js'

/** The person who changes the own factors, in the session that stays when the others end. */
export interface FactorOwner {
  readonly userId: number
  readonly address: string
  readonly role: Role | null
  readonly sessionUid: string
}

/** Services for a change of factors, including its mail. */
export type FactorDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'secrets' | 'now'>

export type CodeCheck = 'right' | 'wrong' | 'too_many'

export function hasFactor({ totp, passkeys }: Factors): boolean {
  return totp || passkeys > 0
}

/** Whether this person may do the work of the role only with a second factor, and has none. */
export async function lacksStaffFactor(
  { db, config }: Pick<Services, 'config' | 'db'>,
  { userId, role }: { readonly userId: number; readonly role: Role | null },
): Promise<boolean> {
  if (!config.staffSecondFactor || role === null) return false
  return !hasFactor(await findFactors(db, userId))
}

/**
 * Checks a code of the authenticator app, or a recovery code, and uses it up. The lock on the secrets counts wrong codes of all
 * processes one after the other.
 */
export async function checkCode(services: FactorDependencies, userId: number, typedCode: string): Promise<CodeCheck> {
  const at = services.now()
  return inRequestTransaction(services, async (transaction) => {
    const secrets = await UserSecrets.query(transaction).findById(userId).forUpdate()
    if (secrets === undefined) return 'wrong'
    if (await hasTooManyWrongCodes(transaction, userId, at)) return 'too_many'
    if (await useTotpCode(services, transaction, secrets, typedCode)) return 'right'
    if (await useRecoveryCode(services, transaction, { userId, typed: typedCode, at })) {
      await enqueueAccountMail(services, transaction, 'recovery_code_used', userId)
      return 'right'
    }
    await transaction('wrong_codes').insert({ userId, at })
    return 'wrong'
  })
}

async function hasTooManyWrongCodes(transaction: Knex.Transaction, userId: number, at: Date): Promise<boolean> {
  const since = new Date(at.getTime() - 3_600_000)
  const wrongCodes = await transaction('wrong_codes').where({ userId }).where('at', '>', since).select('id')
  return wrongCodes.length >= FACTOR_LIMITS.wrongCodesPerHour
}

/** Accepts a code once: the update refuses its step and earlier ones. */
async function useTotpCode(
  services: Pick<Services, 'secrets' | 'now'>,
  transaction: Knex.Transaction,
  { userId, sealedTotpSecret, totpConfirmedAt }: UserSecrets,
  typedCode: string,
): Promise<boolean> {
  if (sealedTotpSecret === null || totpConfirmedAt === null) return false
  const step = findTotpStep(
    services.secrets.decrypt(sealedTotpSecret, ownerOf(userId)),
    withoutBlanks(typedCode),
    services.now(),
  )
  if (step === undefined) return false
  const rowCount = await UserSecrets.query(transaction)
    .patch({ totpLastStep: step })
    .where({ userId })
    .where((query) => query.whereNull('totpLastStep').orWhere('totpLastStep', '<', step))
  return rowCount === 1
}

/**
 * Generates the secret of an authenticator app. It replaces one that is not confirmed; `keeps`: returns that one. Nothing is on before
 * `confirmTotp`.
 */
export async function findOrMakeTotpSecret(
  services: Pick<Services, 'db' | 'requestContext' | 'secrets'>,
  userId: number,
  { keeps }: { readonly keeps: boolean },
): Promise<string> {
  return inRequestTransaction(services, async (transaction) => {
    const { sealedTotpSecret, totpConfirmedAt } = await lockSecrets(transaction, userId)
    if (totpConfirmedAt !== null) throw new Refusal('totp_on', 'The authenticator app is set up already.')
    if (keeps && sealedTotpSecret !== null) return services.secrets.decrypt(sealedTotpSecret, ownerOf(userId))
    const secret = makeTotpSecret()
    await UserSecrets.query(transaction)
      .findById(userId)
      .patch({ sealedTotpSecret: services.secrets.encrypt(secret, ownerOf(userId)) })
    return secret
  })
}

/** Turns the authenticator app on with its first code. Returns the recovery codes. The other sessions end. */
export async function confirmTotp(
  services: FactorDependencies,
  owner: FactorOwner,
  code: string,
): Promise<readonly string[]> {
  const { userId } = owner
  return inRequestTransaction(services, async (transaction) => {
    const { sealedTotpSecret, totpConfirmedAt } = await lockSecrets(transaction, userId)
    if (totpConfirmedAt !== null) throw new Refusal('totp_on', 'The authenticator app is set up already.')
    const secret = sealedTotpSecret && services.secrets.decrypt(sealedTotpSecret, ownerOf(userId))
    const step = secret ? findTotpStep(secret, withoutBlanks(code), services.now()) : undefined
    if (step === undefined) {
      throw new Refusal(
        'code_wrong',
        'The code is wrong. Check that the clock of your device is right, and enter a new code.',
      )
    }
    await UserSecrets.query(transaction).findById(userId).patch({ totpConfirmedAt: services.now(), totpLastStep: step })
    await endOtherSessions(transaction, owner)
    await enqueueAccountMail(services, transaction, 'second_factor_on', userId)
    return replaceRecoveryCodes(transaction, userId)
  })
}

/** Turns the authenticator app off. Without a passkey, the recovery codes go as well. */
export async function turnTotpOff(services: FactorDependencies, owner: FactorOwner): Promise<void> {
  const { userId } = owner
  await inRequestTransaction(services, async (transaction) => {
    const { totpConfirmedAt } = await lockSecrets(transaction, userId)
    if (totpConfirmedAt === null) throw new Refusal('totp_off', 'The authenticator app is not set up.')
    const { passkeys } = await findFactors(transaction, userId)
    if (passkeys === 0) requireRemovable(services, owner)
    await clearTotp(transaction, userId)
    if (passkeys === 0) await transaction('recovery_codes').where({ userId }).delete()
    await endOtherSessions(transaction, owner)
    await enqueueAccountMail(services, transaction, 'second_factor_off', userId)
  })
}

export async function renewRecoveryCodes(services: FactorDependencies, owner: FactorOwner): Promise<readonly string[]> {
  return inRequestTransaction(services, async (transaction) => {
    await lockSecrets(transaction, owner.userId)
    if (!hasFactor(await findFactors(transaction, owner.userId))) {
      throw new Refusal('totp_off', 'Recovery codes need an authenticator app or a passkey.')
    }
    await endOtherSessions(transaction, owner)
    await enqueueAccountMail(services, transaction, 'recovery_codes_new', owner.userId)
    return replaceRecoveryCodes(transaction, owner.userId)
  })
}

/** Deletes an unconfirmed secret: a person who has seen it must not be able to use it after a change of the password. */
export async function deletePendingTotp(transaction: Knex.Transaction, userId: number): Promise<void> {
  await UserSecrets.query(transaction).findById(userId).whereNull('totpConfirmedAt').patch({ sealedTotpSecret: null })
}

/** Removes all factors of an account, for a user who has lost them. */
export async function removeFactors(transaction: Knex.Transaction, userId: number): Promise<void> {
  await clearTotp(transaction, userId)
  for (const table of ['recovery_codes', 'passkeys', 'second_steps'])
    await transaction(table).where({ userId }).delete()
}

/** Staff that must have a second factor keeps the last one. */
export function requireRemovable({ config }: Pick<Services, 'config'>, { role }: Pick<FactorOwner, 'role'>): void {
  if (config.staffSecondFactor && role !== null) {
    throw new Refusal('factor_needed', 'Your role needs a second factor. Add another one before you remove this one.')
  }
}

/** Changes of the factors of an account run one after the other. */
export async function lockSecrets(transaction: Knex.Transaction, userId: number): Promise<UserSecrets> {
  return UserSecrets.query(transaction).findById(userId).forUpdate().throwIfNotFound()
}

async function clearTotp(transaction: Knex.Transaction, userId: number): Promise<void> {
  await UserSecrets.query(transaction)
    .findById(userId)
    .patch({ sealedTotpSecret: null, totpConfirmedAt: null, totpLastStep: null })
}

function ownerOf(userId: number): SecretOwner {
  return `totp ${userId}`
}

function withoutBlanks(code: string): string {
  return code.replace(/\s/g, '')
}
