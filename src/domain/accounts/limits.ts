/** Registration of clients. */
export const CLIENT_LIMITS = {
  /** The document that lists which redirect addresses belong together. */
  sectorDocumentBytes: 64 * 1024,
} as const

/** Local accounts. */
export const ACCOUNT_LIMITS = {
  /** Parsed private keys of local people, each of a few kilobytes. */
  privateKeysKept: 1_000,
} as const
