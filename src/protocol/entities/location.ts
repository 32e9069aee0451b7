import { defineEntity, type EntityOf } from './define-entity.js'
import { required } from './properties.js'
import { anyText, text } from './value-types.js'

/** The location of a post or event; coordinates stay text. */
export const location = defineEntity('location', {
  address: required(anyText),
  lat: required(text()),
  lng: required(text()),
})

export type LocationEntity = EntityOf<typeof location>
