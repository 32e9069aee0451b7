/** Reading of archives that others have made. */
export const ARCHIVE_READ_LIMITS = {
  /** Nesting of objects and arrays. */
  depth: 20,
  /** Characters of one string. */
  stringCharacters: 1_048_576,
  /** Characters of one item, such as a post with its photos, as JSON. */
  itemCharacters: 4_194_304,
} as const
