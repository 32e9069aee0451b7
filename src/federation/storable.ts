import type { ReshareEntity, StatusMessageEntity } from '../protocol/entities/posts.js'
import type { ReceivedEntity } from '../protocol/entities/registry.js'

/** What is taken in; whatever else other pods may send ends as `UnknownEntity`. */
export type StorableEntity = StatusMessageEntity | ReshareEntity

const storable: { readonly [Type in StorableEntity['type']]: true } = { status_message: true, reshare: true }

export function isStorable(entity: ReceivedEntity): entity is StorableEntity {
  return Object.hasOwn(storable, entity.type)
}
