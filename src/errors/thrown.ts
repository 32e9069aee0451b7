/** The message of a thrown value, which may not be an Error. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The code of a system or database error; empty if there is none. */
export function codeOf(thrown: unknown): string {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
}

export function hasCode(thrown: unknown, ...codes: readonly string[]): boolean {
  return codes.includes(codeOf(thrown))
}
