/** The types of the library leave it out; statements of one's own kind need it. */
declare module 'pg/lib/utils.js' {
  /** A value as the server reads it. */
  export function prepareValue(value: unknown): string | Buffer | null
}
