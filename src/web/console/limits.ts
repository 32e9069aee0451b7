/** The web console. */
export const CONSOLE_LIMITS = {
  /** Forms have a reason, a note or a few hundred ids. */
  bodyBytes: 256 * 1024,
  /** A change needs a password that was given at most so long ago. */
  passwordSeconds: 600,
  /** Wrong passwords in this time that end a session. */
  wrongPasswords: 10,
  sessionsWithWrongPasswords: 1_000,
} as const
