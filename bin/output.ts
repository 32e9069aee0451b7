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
