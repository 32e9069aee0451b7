/** What was thrown, in words; it need not be an error. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** Of the system or the database; empty: it has none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
}

export function hasCode(thrown: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(codeOf(thrown))
}
