/** Second factors. */
export const FACTOR_LIMITS = {
  /** Time for the second step after the password. */
  secondStepSeconds: 600,
  /** Wrong codes after one password. */
  attemptsOfSecondStep: 5,
  /** Wrong codes for an account in an hour, from all addresses. */
  wrongCodesPerHour: 20,
  /** Each works once. They fit on a note. */
  recoveryCodes: 10,
  /** Passkeys of an account: some devices, and keys in a drawer. */
  passkeys: 10,
  /** The name must fit in one line of a list. */
  passkeyNameCharacters: 64,
  /** Time to use a passkey after the page was loaded. */
  challengeSeconds: 300,
  /** Maximum age of the password, and of the code, for a change. */
  authenticatedSeconds: 600,
  /** Wrong attempts in the same time that end a session. */
  wrongAttempts: 10,
} as const
