import { compare } from '@node-rs/bcrypt'
import { findTakeOver } from '../../../persistence/operations/take-over-state.js'
import type { Services } from '../../../services/services.js'

/** The pepper that every release of diaspora* contains. It is not secret. */
export const DIASPORA_PEPPER =
  '065eb8798b181ff0ea2c5c16aee0ff8b70e04e2ee6bd6e08b49da46924223e39127d5335e466207d42bf2a045c12be5f90e92012a4f05f7fc6d9f3c875f4c95b'

/** bcrypt ignores what follows. */
const BCRYPT_BYTES = 72

export type PepperDependencies = Pick<Services, 'db' | 'secrets'>

/** Whether a hash is that of diaspora*: bcrypt of password and pepper. */
export function isBcrypt(passwordHash: string): boolean {
  return /^\$2[aby]\$/.test(passwordHash)
}

export async function matchesBcrypt(passwordHash: string, text: string, pepper: string): Promise<boolean> {
  const bytes = Buffer.from(`${text}${pepper}`).subarray(0, BCRYPT_BYTES)
  return compare(bytes, passwordHash).catch(() => false)
}

/** The pepper of the pod whose accounts this pod has taken over. */
export async function findPepper({ db, secrets }: PepperDependencies): Promise<string> {
  const sealedPepper = (await findTakeOver(db))?.sealedPepper
  return sealedPepper ? secrets.decrypt(sealedPepper, 'pepper') : DIASPORA_PEPPER
}
