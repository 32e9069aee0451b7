/**
 * Whether a text is a URL. `URL.canParse` is not used: once Node 20 has optimised it, it refuses texts with letters of Latin-1 beyond
 * ASCII, such as `https://example.org/bücher`.
 */
export function isUrl(text: string, base?: string): boolean {
  try {
    new URL(text, base)
    return true
  } catch {
    return false
  }
}
