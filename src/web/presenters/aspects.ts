import type { Static } from 'typebox'
import type { ListedAspect } from '../../persistence/contacts/list-aspects.js'
import type { Aspect } from '../schemas/aspects.js'

export function presentAspect({ id, name, position }: ListedAspect): Static<typeof Aspect> {
  return { id, name, order: position }
}
