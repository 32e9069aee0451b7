/** Characters that neither PostgreSQL nor XML can hold: control characters except tab and line breaks, and lone surrogates. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the pattern searches for them
const UNSTORABLE = /[\0-\x08\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]/u

/** Whether all texts in a value, at any depth, can be stored and sent unchanged. */
export function hasOnlyStorableText(value: unknown): boolean {
  const remainingValues = [value]
  while (remainingValues.length > 0) {
    const next = remainingValues.pop()
    if (typeof next === 'string' && UNSTORABLE.test(next)) return false
    // Not `push(...values)`: a long list would exceed the number of arguments of a call.
    if (typeof next === 'object' && next !== null)
      for (const inside of Object.values(next)) remainingValues.push(inside)
  }
  return true
}
