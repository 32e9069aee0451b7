import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { StorableMessage } from '../batch.js'

/** The first message of each guid. */
export function firstOfEachGuid<Entity extends ReceivableEntity & { readonly guid: string }>(
  messages: readonly StorableMessage<Entity>[],
): ReadonlyMap<string, StorableMessage<Entity>> {
  return new Map(messages.toReversed().map((message) => [message.entity.guid, message]))
}
