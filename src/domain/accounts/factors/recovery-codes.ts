import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import type { Services } from '../../../services/services.js'
import { findPepper, matchesBcrypt } from '../passwords/bcrypt-password.js'
import { hashToken } from '../token-hash.js'
import { FACTOR_LIMITS } from './limits.js'
import { writeBase32 } from './totp.js'

/** 80 random bits are 16 characters. */
const CODE_BYTES = 10
const BACKUP_CODE = /^[0-9a-f]{16}$/

/** Generates new codes, which end the old ones. They are shown once: only their hashes are stored. */
export async function replaceRecoveryCodes(transaction: Knex.Transaction, userId: number): Promise<readonly string[]> {
  const codes = Array.from({ length: FACTOR_LIMITS.recoveryCodes }, () => writeBase32(randomBytes(CODE_BYTES)))
  await transaction('recovery_codes').where({ userId }).delete()
  await transaction('recovery_codes').insert(codes.map((code) => ({ userId, codeHash: hashToken(code) })))
  return codes.map((code) => (code.match(/.{4}/g) ?? []).join('-'))
}

interface TypedCode {
  readonly userId: number
  readonly typed: string
  readonly at: Date
}

/** Uses up a code. The one conditional update lets only one of two simultaneous requests succeed. */
export async function useRecoveryCode(
  services: Pick<Services, 'secrets'>,
  transaction: Knex.Transaction,
  { userId, typed, at }: TypedCode,
): Promise<boolean> {
  const codeHash = hashToken(typed.toUpperCase().replace(/[\s-]/g, ''))
  const rowCount = await transaction('recovery_codes').where({ userId, codeHash, usedAt: null }).update({ usedAt: at })
  return rowCount === 1 || (await useBackupCode(services, transaction, { userId, typed, at }))
}

/** Uses up a backup code of diaspora*, which are compared one by one. */
async function useBackupCode(
  { secrets }: Pick<Services, 'secrets'>,
  transaction: Knex.Transaction,
  { userId, typed, at }: TypedCode,
): Promise<boolean> {
  const code = typed.toLowerCase().replace(/[\s-]/g, '')
  if (!BACKUP_CODE.test(code)) return false
  const rows: readonly { readonly codeHash: Buffer }[] = await transaction('recovery_codes')
    .where({ userId, bcrypt: true, usedAt: null })
    .orderBy('codeHash')
    .select('codeHash')
  if (rows.length === 0) return false
  const pepper = await findPepper({ db: transaction, secrets })
  for (const { codeHash } of rows) {
    if (!(await matchesBcrypt(codeHash.toString(), code, pepper))) continue
    return (await transaction('recovery_codes').where({ userId, codeHash, usedAt: null }).update({ usedAt: at })) === 1
  }
  return false
}
