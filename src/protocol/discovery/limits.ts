/** Fields of an hCard. A longer value is truncated or refused. */
export const HCARD_LIMITS = {
  /** The column of other pods has 255 characters. */
  guidCharacters: 255,
  /** The column of other pods has 255 characters. */
  nicknameCharacters: 255,
  /** UTF-16 units, including spaces after the name. */
  nameCharacters: 255,
  /** `true` or `false`. */
  flagCharacters: 10,
  /** A key of 8 192 bits has some 1 500 characters as PEM. */
  keyCharacters: 4 * 1024,
  /** Nested elements. A closing tag without an open element makes the parser walk through all of them. */
  levels: 200,
  /** Characters after which the parser stops if all fields are complete. */
  charactersPerChunk: 4 * 1024,
} as const

/** Public posts that are fetched from the pod of a person when the person is found. */
export const PERSON_STREAM_LIMITS = {
  /** One page of diaspora*. */
  posts: 15,
  /** One page of fifteen long posts. */
  bytes: 1024 * 1024,
  /** No person waits for these posts. A slower pod has another chance at the next search. */
  requestMs: 10_000,
  /** The stream with all its posts. */
  allMs: 30_000,
  /** Fetches of what one post needs, such as the root of a reshare. */
  fetchesOfPost: 2,
} as const
