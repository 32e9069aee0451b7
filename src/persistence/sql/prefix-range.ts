const LAST_CHARACTER = String.fromCodePoint(0x10ffff)

/**
 * The upper bound of all texts that begin with a prefix, in byte order: `column >= prefix and column < prefixRangeEnd(prefix)`. A range
 * is read from an index even if the prefix is a parameter; `like` with a parameter is not.
 */
export function prefixRangeEnd(prefix: string): string {
  return `${prefix}${LAST_CHARACTER}`
}
