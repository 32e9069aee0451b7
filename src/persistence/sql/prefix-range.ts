const LAST_CHARACTER = String.fromCodePoint(0x10ffff)

/**
 * Where the texts end that begin with this one, in the order of bytes. As a range they are read from an index whatever the
 * value is; a pattern that is a value is not.
 */
export function endOfRange(beginning: string): string {
  return `${beginning}${LAST_CHARACTER}`
}
