import type { Knex } from 'knex'
import type { EntityKey } from '../../../jobs/waiting/entity-key.js'
import { type NewWaitingMessage, storeWaitingMessages } from '../../../jobs/waiting/store-waiting-messages.js'
import { splitAddress } from '../../../protocol/address.js'
import type { Services } from '../../../services/services.js'
import type { StoredRecord, WaitingMessage } from '../batch.js'
import { providedKeys } from '../store/lock-entities.js'

/** Stores the waiting messages. Returns the entities that are stored by now; `raiseCountsAndResumeMessages` resumes their messages. */
export function storeWaitingMessagesOfBatch(
  services: Services,
  transaction: Knex.Transaction,
  waiting: readonly WaitingMessage[],
  records: readonly StoredRecord[],
): Promise<readonly EntityKey[]> {
  const entityKeys = records.flatMap(({ message }) => providedKeys(message))
  return storeWaitingMessages(services, transaction, waiting.map(newWaitingMessageOf), entityKeys)
}

function newWaitingMessageOf({ inbound, ...wait }: WaitingMessage): NewWaitingMessage {
  const { envelope, recipientGuid, acceptedAt, source, trace, resumed, movesFollowed, quarantineId, isReleased } =
    inbound
  const senderHost = splitAddress(wait.sender)?.host
  return {
    ...wait,
    senderHost,
    source,
    trace,
    payload: envelope,
    recipientGuid,
    acceptedAt,
    times: resumed?.times ?? 0,
    movesFollowed,
    quarantineId,
    isReleased,
  }
}
