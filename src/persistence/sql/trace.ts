/** A column with a trace as its 32 hexadecimal digits. */
export function traceDigits(column: string): string {
  return `replace(${column}::text, '-', '')`
}
