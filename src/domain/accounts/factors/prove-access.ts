import type { Pod } from '../../../pod/pod.js'
import { isPassword } from '../sign-in.js'
import { checkCode, findFactors, hasFactor } from './second-factor.js'

export type ProofOutcome = 'proven_by_password' | 'proven_by_code' | 'password_wrong' | 'code_wrong' | 'too_many_codes'

/** Checks the password, and the code if the account has a second factor. The code is used up only if the password is right. */
export async function proveAccess(
  pod: Pick<Pod, 'db' | 'now' | 'secrets' | 'claimedKey'>,
  userId: number,
  { password, code }: { readonly password: string; readonly code: string },
): Promise<ProofOutcome> {
  if (!(await isPassword(pod, userId, password))) return 'password_wrong'
  if (!hasFactor(await findFactors(pod.db, userId))) return 'proven_by_password'
  const check = await checkCode(pod, userId, code)
  if (check === 'right') return 'proven_by_code'
  return check === 'wrong' ? 'code_wrong' : 'too_many_codes'
}
