/** Requests to other pods, and how much of a response is read. */
export const REMOTE_LIMITS = {
  /** DNS, TCP and TLS together. A slower pod counts as unreachable. */
  connectMs: 5_000,
  /** One DNS query; it is sent twice within `connectMs`. */
  dnsTryMs: 1_500,
  /** Names whose addresses are kept, for as long as their record allows and at most this time. Each use checks the addresses again. */
  dnsNames: 5_000,
  /** Milliseconds; a pod that moves is found within a minute. */
  dnsKeptMs: 60_000,
  /** TLS sessions that are kept for the next connection, of one to four kilobytes, and their maximum age. */
  tlsSessions: 5_000,
  /** Servers change the keys of their sessions in hours. */
  tlsSessionMs: 60 * 60_000,
  /** Delay before the next address of a name is tried in parallel. The first address may be dead. */
  connectAttemptMs: 1_000,
  /** Time from the call to the last byte, including redirects and waiting for a slot. */
  exchangeMs: 30_000,
  /** The default of Node. */
  headerBytes: 16 * 1024,
  /** WebFinger, hCard and NodeInfo have a few kilobytes; a key or a long list of links fits many times. */
  discoveryBytes: 128 * 1024,
  /** The largest envelope that is accepted. */
  fetchBytes: 8 * 1024 * 1024,
  /** Read from an unneeded response, so that its connection can be reused. */
  unreadBytes: 4 * 1024,
  /** A slower rest costs more than a new connection. */
  unreadMs: 1_000,
  /** Redirects of a request: from http to https, from www to the bare name, and from one owner to the next. */
  redirects: 4,
  /** Concurrent exchanges of this process: one with each pod that is delivered to, and those of 64 fetches. */
  maxConcurrent: 768,
  /** A slow pod occupies at most this number of slots. */
  fetchesPerHost: 8,
  /** Concurrent deliveries to one host; see `maxConcurrent` in `DELIVERY_LIMITS`. */
  deliveriesPerHost: 4,
  /** Requests to a third pod that an unknown sender can cause. */
  fetchesPerHostPerMinute: 600,
  /** Shorter than the idle timeout of usual servers that do not announce one, so that they do not close while this pod writes. */
  idleMs: 4_000,
  /** Maximum announced idle timeout that is used. Idle connections to thousands of pods cost file descriptors. */
  maxIdleMs: 30_000,
  /** Maximum accepted Retry-After. */
  retryAfterSeconds: 24 * 60 * 60,
} as const

export type RemoteLimits = { readonly [Name in keyof typeof REMOTE_LIMITS]: number }
