import { Type } from 'typebox'

/** A whole number without a sign, also as a text: forms know nothing else. To be read with `Number`. */
export function numberField(options: {
  readonly minimum: number
  /** As many as it may have. */
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

/** The number of a row in a path; what is none is taken for 0, which no row has. */
export function readRowId(text: string): number {
  return /^[0-9]{1,15}$/.test(text) ? Number(text) : 0
}
