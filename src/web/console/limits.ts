/** The web console. */
export const CONSOLE_LIMITS = {
  /** Forms have a reason, a note or a few hundred ids. */
  bodyBytes: 256 * 1024,
} as const
