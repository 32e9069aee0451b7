import type { ReceivedEntity } from '../../../protocol/entities/registry.js'
import type { Arrival } from '../../inbound/batch.js'

/** An entity of an archive in the form in which received entities are stored. No pod has sent or signed it. */
export function buildImportedArrival<Entity extends ReceivedEntity>(entity: Entity, now: Date): Arrival<Entity> {
  const { author } = entity
  const signer = {
    address: author,
    local: true,
    closed: false,
    hasSigned: true,
    isPersonBlocked: false,
    blocked: false,
    offline: false,
    key: undefined,
  }
  return {
    message: { envelope: '', acceptedAt: now },
    sender: author,
    signer,
    author: signer,
    entity,
    signature: 'absent',
  }
}
