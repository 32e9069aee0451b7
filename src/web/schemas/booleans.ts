import { Type } from 'typebox'

const YES = ['true', '1', 't', 'on', 'yes']
const NO = ['false', '0', 'f', 'off', 'no']

/** Texts stand for both where a form or a query knows nothing but texts. */
export const BooleanField = Type.Unsafe<boolean | string>({
  anyOf: [{ type: 'boolean' }, { type: 'string', pattern: `^(?:${[...YES, ...NO].map(inAnyCase).join('|')})$` }],
})

/** A value that the schema above let through. */
export function readBoolean(value: boolean | string): boolean {
  return typeof value === 'boolean' ? value : YES.includes(value.toLowerCase())
}

/** The pattern of a schema has no flags. */
function inAnyCase(word: string): string {
  return word.replace(/[a-z]/g, (letter) => `[${letter.toUpperCase()}${letter}]`)
}
