import { findFactors } from '../../../persistence/accounts/factors.js'
import { isPassword } from '../sign-in.js'
import { checkCode, type FactorDependencies, hasFactor } from './second-factor.js'

export type ReauthenticationOutcome =
  | 'password_right'
  | 'code_right'
  | 'password_wrong'
  | 'code_wrong'
  | 'too_many_codes'

/** Checks the password, and the code if the account has a second factor. The code is used up only if the password is right. */
export async function reauthenticate(
  services: FactorDependencies,
  userId: number,
  { password, code }: { readonly password: string; readonly code: string },
): Promise<ReauthenticationOutcome> {
  if (!(await isPassword(services, userId, password))) return 'password_wrong'
  if (!hasFactor(await findFactors(services.db, userId))) return 'password_right'
  const check = await checkCode(services, userId, code)
  if (check === 'right') return 'code_right'
  return check === 'wrong' ? 'code_wrong' : 'too_many_codes'
}
