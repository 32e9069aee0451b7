/** Public pages of posts and people. Their texts come from other people. */
export const PAGE_LIMITS = {
  /** A page with many readers is rendered a few times a minute. */
  cachedMs: 5_000,
  cachedPages: 500,
  cachedBytes: 16 * 1024 * 1024,
  /** The longest post with the worst Markdown takes a third of a second. Requests that wait longer get 503. */
  renderMs: 4_000,
  rendersQueued: 20,
  threadIdleMs: 60_000,
  threadMegabytes: 64,
  /** The period of the setting PAGE_LIMIT, per network address. */
  perSeconds: 60,
  /** Network addresses counted at the same time. */
  sources: 20_000,
} as const
