/** What neither the database nor XML can hold: control characters other than tab and line breaks, and halves of pairs. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNWRITABLE = /[\0-\x08\v\f\x0e-\x1f\ud800-\udfff\ufffe\uffff]/u

/** Whether every text in a value, however deep, can be stored and sent on as it is. */
export function holdsPlainText(value: unknown): boolean {
  const left = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === 'string' && UNWRITABLE.test(next)) return false
    // One by one: a list of a body may be longer than a call has room for.
    if (typeof next === 'object' && next !== null) for (const inside of Object.values(next)) left.push(inside)
  }
  return true
}
