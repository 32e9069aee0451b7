import type { Knex } from 'knex'
import { newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { insertNewConversations } from '../../persistence/inbound/insert-conversations.js'
import type { Person } from '../../persistence/models/person.js'
import type { Services } from '../../services/services.js'
import { newGuid } from '../new-guid.js'
import { addConversationMessages } from './add-conversation-messages.js'

export interface FirstMessage {
  readonly guid?: string
  readonly messageGuid?: string
  readonly recipients: readonly Pick<Person, 'address'>[]
  readonly subject: string
  readonly text: string
  readonly createdAt: Date
}

/** Stores a conversation with a first message and sends it. The caller has checked who may write to whom. */
export async function beginConversation(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  { id: senderId, address: author }: Pick<Person, 'id' | 'address'>,
  { guid = newGuid(), messageGuid = newGuid(), recipients, subject, text, createdAt }: FirstMessage,
): Promise<void> {
  const participants = [author, ...recipients.map(({ address }) => address)]
  await insertNewConversations(transaction, [
    { guid, author, subject, participants, unknownParticipants: [], createdAt, arrivedAt: createdAt },
  ])
  const first = { guid: messageGuid, conversationGuid: guid, author, text, createdAt, arrivedAt: createdAt }
  await addConversationMessages(
    services,
    transaction,
    [first],
    [newDispatchJob(senderId, { record: 'conversation', guid })],
  )
}
