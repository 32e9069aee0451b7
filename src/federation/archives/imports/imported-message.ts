import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { StorableMessage } from '../../inbound/batch.js'

/** An entity of an archive in the form in which received entities are stored. No pod has sent or signed it. */
export function buildImportedMessage<Entity extends ReceivableEntity>(
  entity: Entity,
  now: Date,
): StorableMessage<Entity> {
  const { author } = entity
  const signer = {
    address: author,
    isLocal: true,
    isClosed: false,
    hasSigned: true,
    isPersonBlocked: false,
    isPodBlocked: false,
    isPodOffline: false,
    key: undefined,
  }
  return {
    inbound: { envelope: '', acceptedAt: now },
    sender: author,
    signer,
    author: signer,
    entity,
    signature: 'absent',
    isParentLocal: false,
  }
}
