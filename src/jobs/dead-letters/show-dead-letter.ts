import { findDeadDeliveryPayload, listDeadDeliveries } from '../../persistence/outbound/dead-deliveries.js'
import { formatAddressHost } from '../../protocol/address.js'
import { readAcceptedMessages } from '../inbound/accepted-messages.js'
import { readOutboxId } from '../outbox/load-job.js'
import { type DeadLetter, type DeadLetterDependencies, NUMERIC_IDS, pageOfSource } from './dead-letter.js'
import { findDeadLetters, withoutStorage } from './find-dead-letters.js'

export interface DeadLetterDetails extends DeadLetter {
  readonly data: unknown
  readonly payload: string | null
  /** Set: the payload is encrypted for this local person, or private for a person of another pod. */
  readonly recipientGuid: string | null
  readonly isPublic: boolean
  /** The kind of error and its stack, without any values. */
  readonly stack: string | null
}

/** Shows a dead letter with its data and payload. */
export async function showDeadLetter(
  services: DeadLetterDependencies,
  id: string,
): Promise<DeadLetterDetails | undefined> {
  const [deadLetter] = await findDeadLetters(services, { ids: [id] }, { limit: 1 })
  if (deadLetter === undefined) return undefined
  const { outboxId, deliveryId, job } = deadLetter
  const [ofRow, failed, ofDelivery] = await Promise.all([
    outboxId === undefined ? undefined : contentOfRow(services, outboxId),
    job && services.jobs.find(job.queue, job.id),
    deliveryId === undefined ? undefined : contentOfDelivery(services, deliveryId),
  ])
  const content = ofRow ?? ofDelivery ?? (failed && readOutboxId(failed.data) === undefined ? contentOfJob(failed) : {})
  return { ...withoutStorage(deadLetter), ...NO_CONTENT, ...content, stack: failed?.stacktrace?.at(-1) ?? null }
}

type Content = Pick<DeadLetterDetails, 'data' | 'payload' | 'recipientGuid' | 'isPublic'>

const NO_CONTENT: Content = { data: null, payload: null, recipientGuid: null, isPublic: false }

async function contentOfRow({ db }: DeadLetterDependencies, outboxId: number): Promise<Partial<Content>> {
  const row = await db('outbox')
    .where({ id: outboxId })
    .first(db.raw(`data - 'fault' - 'failure' as data`), 'payload', db.raw(`data ->> 'recipientGuid' as recipient`))
  if (row === undefined) return {}
  const { data, payload, recipient } = row
  return { data, payload, recipientGuid: recipient, isPublic: payload !== null && recipient === null }
}

async function contentOfDelivery({ db }: DeadLetterDependencies, id: number): Promise<Partial<Content>> {
  const page = pageOfSource('deliveries', { limit: 1 }, {}, NUMERIC_IDS)
  const [[delivery], found] = await Promise.all([
    listDeadDeliveries(db, { ids: [id] }, page),
    findDeadDeliveryPayload(db, id),
  ])
  if (delivery === undefined || found === undefined) return {}
  const { record, guid, verb, status } = delivery
  const data = { pod: formatAddressHost(delivery), record, guid, verb, status } // not the address of a recipient
  return { data, payload: found.entity, recipientGuid: found.recipientGuid, isPublic: found.isPublic }
}

/** A job of messages that was given up has one message. */
function contentOfJob(job: Parameters<typeof readAcceptedMessages>[0]): Partial<Content> {
  const [message] = readAcceptedMessages(job)
  if (message === undefined) return { data: job.data }
  const { payload, recipientGuid } = message
  return { data: job.data, payload, recipientGuid, isPublic: recipientGuid === null }
}
