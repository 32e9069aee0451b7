import type { Services } from '../../services/services.js'
import { findMovedAddress, type SignIn, signIn } from './sign-in.js'
import { findPendingState, type PendingSignUpState, repeatConfirmation } from './sign-ups/pending-state.js'

export type PasswordSignIn =
  | { readonly state: 'correct'; readonly signIn: SignIn }
  /** The account is not open yet. */
  | { readonly state: 'pending'; readonly waitsFor: PendingSignUpState['waitsFor'] }
  /** The account has moved to this network ID. */
  | { readonly state: 'moved'; readonly to: string }
  /** Name or password is wrong, or the account is closed or locked. */
  | { readonly state: 'wrong' }

/** Checks name and password. For a sign-up that waits for a confirmation, the mail is sent again. */
export async function signInWithPassword(
  services: Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'secrets' | 'now'>,
  username: string,
  password: string,
): Promise<PasswordSignIn> {
  const correct = await signIn(services, username, password)
  if (correct !== undefined) return { state: 'correct', signIn: correct }
  const pending = await findPendingState(services, username, password)
  if (pending === undefined) {
    const to = await findMovedAddress(services, username, password)
    return to === undefined ? { state: 'wrong' } : { state: 'moved', to }
  }
  if (pending.waitsFor === 'confirmation') await repeatConfirmation(services, pending)
  return { state: 'pending', waitsFor: pending.waitsFor }
}
