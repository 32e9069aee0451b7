import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** The second factors of an account. */
export interface Factors {
  readonly totp: boolean
  readonly passkeys: number
  readonly recoveryCodesLeft: number
}

export async function findFactors(db: Knex, userId: number): Promise<Factors> {
  const { totp, passkeys, recoveryCodesLeft } = await queryRow<Factors>(
    db,
    `select
       exists (select from user_secrets where user_id = :userId and totp_confirmed_at is not null) as totp,
       (select count(*)::int from passkeys where user_id = :userId) as passkeys,
       (select count(*)::int from recovery_codes where user_id = :userId and used_at is null) as "recoveryCodesLeft"`,
    { userId },
  )
  return { totp, passkeys, recoveryCodesLeft }
}
