import { Type } from 'typebox'

const YES = ['true', '1', 't', 'on', 'yes']
const NO = ['false', '0', 'f', 'off', 'no']

/** A boolean, or its text in forms and queries, which have only texts. */
export const BooleanField = Type.Unsafe<boolean | string>({
  anyOf: [{ type: 'boolean' }, { type: 'string', pattern: `^(?:${[...YES, ...NO].map(inAnyCase).join('|')})$` }],
})

export function isBooleanText(text: string): boolean {
  return [...YES, ...NO].includes(text.toLowerCase())
}

/** Reads a value that matches `BooleanField`. */
export function readBoolean(value: boolean | string): boolean {
  return typeof value === 'boolean' ? value : YES.includes(value.toLowerCase())
}

/** A case-insensitive pattern; JSON Schema patterns have no flags. */
function inAnyCase(word: string): string {
  return word.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)
}
