/** Escapes a text for LIKE, so that its characters mean only themselves. */
export function escapeLike(text: string): string {
  return text.replace(/[\\%_]/g, '\\$&')
}
