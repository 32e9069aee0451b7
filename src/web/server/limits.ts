/** A connection and its requests. */
export const HTTP_LIMITS = {
  /** Enough for a token, some proxy addresses and a long query; it bounds a header flood. */
  headerBytes: 16 * 1024,
  /** Two thousand clients that send one byte a minute must not hold two thousand connections. */
  headersTimeoutMs: 10_000,
  /** Enough for a body of maximum size over a slow phone connection. */
  requestTimeoutMs: 30_000,
  /** Enough for the largest picture over a slow phone connection. Only requests with a token may upload one. */
  longRequestTimeoutMs: 180_000,
  /**
   * Waiting time in the queue, before the body timeout starts. With the processing of the photo it is shorter than usual proxy timeouts.
   */
  turnTimeoutMs: 25_000,
  /** Time without traffic in either direction after which the peer counts as gone. */
  idleTimeoutMs: 60_000,
  /** Longer than the 60 seconds of usual proxies, so that the proxy closes first and never uses a closed socket. */
  keepAliveTimeoutMs: 65_000,
  /** How often these timeouts are checked, and therefore how late they may fire. */
  connectionsCheckMs: 5_000,
  /** Requests after which a client reconnects and may reach another process. */
  requestsPerSocket: 1_000,
  /** Pipelined requests before the first response. Clients and proxies wait; an attacker could start thousands at once. */
  requestsAhead: 10,
  /** Below the file descriptor limit of an ordinary process. */
  connections: 2_000,
  /** Per address that is not a trusted proxy; an IPv6 /64 counts as one. Enough for a large network behind one address. */
  connectionsOfAddress: 200,
  /** All /64 networks of an IPv6 /48 together: one customer usually has all of them. */
  connectionsOfSite: 600,
  /** Share of `connections`. Above it, each new connection closes an idle one of the address with the most. */
  connectionsFilledPercent: 90,
  /** The longest text has 65 535 characters of at most four bytes, and JSON may write six bytes for one. */
  apiBodyBytes: 1024 * 1024,
  /** Page links contain their whole query; no other URL is long. */
  urlBytes: 8 * 1024,
  /** A guid or a tag has up to 255 characters, counted after decoding. */
  pathParameterCharacters: 300,
  /** A page link has guids, times and numbers; a search has a few words. */
  queryParameterCharacters: 1_024,
  /** API forms have a few dozen fields. Each field name is parsed. */
  formFields: 1_000,
  /** `poll[answers][]` has two levels below its name. */
  formDepth: 4,
  /** Delay of the event loop in three of five samples. Above it a retry serves the client better than waiting. */
  eventLoopDelayMs: 1_000,
  /** Retry-After when a dependency is unavailable or overloaded. */
  retryAfterSeconds: 10,
  /** Time for a proxy to use or close its idle connections at shutdown. Longer than the idle timeout of the example for nginx. */
  drainMs: 3_000,
  /** Time for running requests at shutdown. */
  closeTimeoutMs: 10_000,
  /** A database that needs longer for an empty query could not serve a request either. */
  readinessTimeoutMs: 1_000,
} as const

export type HttpLimits = { readonly [Name in keyof typeof HTTP_LIMITS]: number }

/** Compression of responses, in bytes of the text. */
export const COMPRESSION_LIMITS = {
  /** A smaller response fits in one packet as it is. */
  minBytes: 1_024,
  /** Up to here it takes 0.1 ms, less than a thread would cost; everything larger is compressed in a thread. */
  bytesOnEventLoop: 16 * 1_024,
} as const
