import { Type } from 'typebox'

/** A whole number without a sign, also as a text, as in forms. Read it with `Number`. */
export function numberField(options: {
  readonly minimum: number
  /** The maximum number of digits. */
  readonly digits: number
  readonly description: string
}) {
  const { minimum, digits, description } = options
  return Type.Unsafe<number | string>({
    anyOf: [
      { type: 'integer', minimum, maximum: 10 ** digits - 1 },
      { type: 'string', pattern: `^[0-9]{1,${digits}}$` },
    ],
    description,
  })
}

/** Reads the id of a row from a path. Another text becomes 0, which no row has. */
export function readRowId(text: string): number {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
}
