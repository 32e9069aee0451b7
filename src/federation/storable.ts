import type { ReceivableEntity, ReceivedEntity } from '../protocol/entities/registry.js'

/** What is taken in. Events are read and verified, and end as `UnknownEntity`. */
export type StorableEntity = ReceivableEntity

export function isStorable(entity: ReceivedEntity): entity is StorableEntity {
  return entity.type !== 'event' && entity.type !== 'event_participation'
}
