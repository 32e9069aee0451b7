/** Second factors. */
export const FACTOR_LIMITS = {
  /** Time for the second step after the password. */
  secondStepSeconds: 600,
  /** Wrong codes after one password. */
  triesOfSecondStep: 5,
  /** Wrong codes for an account in an hour, from all addresses. */
  wrongCodesPerHour: 20,
  recoveryCodes: 10,
  passkeys: 10,
  passkeyNameCharacters: 60,
  challengeSeconds: 300,
  /** A change needs a proof that is at most so old. */
  proofSeconds: 600,
  /** Wrong proofs in the same time that end a session. */
  wrongProofs: 10,
} as const
