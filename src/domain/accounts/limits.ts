/** Registration of clients. */
export const CLIENT_LIMITS = {
  /** The document that lists which redirect addresses belong together. */
  sectorDocumentBytes: 64 * 1024,
} as const
