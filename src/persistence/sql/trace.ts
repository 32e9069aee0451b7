/** A column with a trace as its 32 hexadecimal digits. */
export function traceDigitsSql(column: string): string {
  return `replace(${column}::text, '-', '')`
}
