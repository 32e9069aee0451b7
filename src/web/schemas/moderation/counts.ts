import { Type } from 'typebox'

/** A count of a preview. */
export const Count = Type.Union([Type.Integer(), Type.Object({ count: Type.Integer(), exact: Type.Literal(false) })], {
  description: 'A number, or a bound that it exceeds.',
})
