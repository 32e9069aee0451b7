import { Type } from 'typebox'

export const Aspect = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    order: Type.Integer({ description: 'The position among your aspects, from 1.' }),
  },
  { $id: 'Aspect', description: 'A group of your contacts.' },
)
