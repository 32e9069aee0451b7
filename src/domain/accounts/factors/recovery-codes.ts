import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { hashToken } from '../token-hash.js'
import { FACTOR_LIMITS } from './limits.js'
import { writeBase32 } from './totp.js'

/** 80 random bits are 16 characters. */
const CODE_BYTES = 10

/** Makes new codes, which end the old ones. They are shown once: only their hashes are stored. */
export async function replaceRecoveryCodes(transaction: Knex.Transaction, userId: number): Promise<readonly string[]> {
  const codes = Array.from({ length: FACTOR_LIMITS.recoveryCodes }, () => writeBase32(randomBytes(CODE_BYTES)))
  await transaction('recovery_codes').where({ userId }).delete()
  await transaction('recovery_codes').insert(codes.map((code) => ({ userId, codeHash: hashToken(code) })))
  return codes.map((code) => (code.match(/.{4}/g) ?? []).join('-'))
}

/** Uses up a code. The one conditional update lets only one of two simultaneous requests succeed. */
export async function useRecoveryCode(
  transaction: Knex.Transaction,
  { userId, typed, at }: { readonly userId: number; readonly typed: string; readonly at: Date },
): Promise<boolean> {
  const codeHash = hashToken(typed.toUpperCase().replace(/[\s-]/g, ''))
  const used = await transaction('recovery_codes').where({ userId, codeHash, usedAt: null }).update({ usedAt: at })
  return used === 1
}
