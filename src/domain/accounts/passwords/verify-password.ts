import { hash, verify } from '@node-rs/argon2'
import type { Knex } from 'knex'
import { UserSecrets } from '../../../persistence/models/user.js'
import { ARGON2 } from '../accounts.js'
import { findPepper, isBcrypt, matchesBcrypt, type PepperDependencies } from './bcrypt-password.js'

/** Compares a password with its hash, in threads of the libraries. The rules for new passwords do not apply. */
export async function verifyPassword(
  services: PepperDependencies,
  passwordHash: string,
  password: string,
): Promise<boolean> {
  if (!isBcrypt(passwordHash)) return verify(passwordHash, password).catch(() => false)
  return matchesBcrypt(passwordHash, password, await findPepper(services))
}

/**
 * Replaces the bcrypt hash of a password that was right. Returns the hash that the account has now; another one means that the password
 * has changed in the meantime.
 */
export async function replaceBcrypt(
  { db }: { readonly db: Knex },
  { userId, passwordHash }: { readonly userId: number; readonly passwordHash: string },
  password: string,
): Promise<string> {
  if (!isBcrypt(passwordHash)) return passwordHash
  const newHash = await hash(password, ARGON2)
  const count = await UserSecrets.query(db).patch({ passwordHash: newHash }).where({ userId, passwordHash })
  if (count === 1) return newHash
  // A sign-in at the same time has replaced it.
  const current = (await UserSecrets.query(db).findById(userId))?.passwordHash
  return current && !isBcrypt(current) && (await verify(current, password).catch(() => false)) ? current : passwordHash
}
