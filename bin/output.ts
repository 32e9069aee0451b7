export interface OutputOptions {
  readonly json?: boolean
}

/** Prints the answer of a command: one JSON document, or lines of text. */
export function print(options: OutputOptions, data: unknown, lines: readonly string[]): void {
  process.stdout.write(options.json ? `${JSON.stringify(data)}\n` : lines.map((line) => `${line}\n`).join(''))
}

/** Columns padded to their widest cell, except the last. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length))
  const widths = Array.from({ length: columns }, (_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, index) => cell.padEnd(widths[index] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Removes control characters: names and texts are untrusted and could move the cursor or change colours. */
export function printable(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are replaced
  return line.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd')
}

/** A count of a preview, which may be a bound. */
export function countText(count: number | { readonly count: number }): string {
  return typeof count === 'number' ? String(count) : `more than ${count.count}`
}
