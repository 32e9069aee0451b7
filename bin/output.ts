export interface OutputOptions {
  readonly json?: boolean
}

/** What a command has to say: one JSON document for programs, or lines for people. */
export function print(options: OutputOptions, data: unknown, lines: readonly string[]): void {
  process.stdout.write(options.json ? `${JSON.stringify(data)}\n` : lines.map((line) => `${line}\n`).join(''))
}

/** Columns as wide as their widest cell; the last one as long as it likes. */
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

/** Names and texts come from strangers; what would move the cursor or change colours does not reach the terminal. */
export function printable(line: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is replaced
  return line.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, '\ufffd')
}
