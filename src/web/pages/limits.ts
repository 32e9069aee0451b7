/** Public pages of posts and people. Their texts come from other people. */
export const PAGE_LIMITS = {
  /** A page with many readers is rendered a few times a minute. */
  cachedMs: 5_000,
  /** Entries of the cache of each web process. */
  cachedPages: 500,
  /** Bytes of the texts in the cache of each web process. */
  cachedBytes: 16 * 1024 * 1024,
  /** The longest post with the worst Markdown takes a third of a second. Requests that wait longer get 503. */
  renderMs: 4_000,
  /** Pages that wait for the thread: the last one waits a few seconds at worst. */
  rendersQueued: 20,
  /** A thread without work ends and frees its memory. */
  threadIdleMs: 60_000,
  /** Heap of the thread, which ends beyond it: the web process is not affected. */
  threadMegabytes: 64,
  /** The period of the setting PAGE_LIMIT, per network address. */
  perSeconds: 60,
  /** Network addresses counted at the same time. */
  sources: 20_000,
} as const
