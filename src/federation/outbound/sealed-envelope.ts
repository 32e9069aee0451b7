import type { Knex } from 'knex'
import { privateKeyOf } from '../../domain/accounts/private-keys.js'
import { OutboundMessage } from '../../persistence/models/outbound-message.js'
import type { Pod, PodCrypto } from '../../pod/pod.js'

/** Envelopes that are being signed, by the threads that do it. */
const underWay = new WeakMap<PodCrypto, Map<number, Promise<string | undefined>>>()

/**
 * The envelope of a message, signed by whoever needs it first and kept for all others and for every later try. Undefined: the
 * message was taken back.
 */
export async function sealedEnvelope(pod: Pod, messageId: number): Promise<string | undefined> {
  const flights = underWay.get(pod.crypto) ?? new Map<number, Promise<string | undefined>>()
  underWay.set(pod.crypto, flights)
  const shared = flights.get(messageId)
  if (shared !== undefined) return shared
  const flight = readOrSeal(pod, messageId).finally(() => flights.delete(messageId))
  flights.set(messageId, flight)
  return flight
}

async function readOrSeal(pod: Pod, messageId: number): Promise<string | undefined> {
  const message = await OutboundMessage.query(pod.db).findById(messageId).withGraphFetched('sender')
  if (message === undefined || message.envelope !== null) return message?.envelope ?? undefined
  if (message.sender === undefined) throw new Error(`Message ${messageId} has no sender.`)
  const key = await privateKeyOf(pod, message.senderId)
  const envelope = await pod.crypto.sealEnvelope(message.entity, message.sender.address, key)
  return keep(pod.db, messageId, envelope)
}

/** Another process may have been faster: every pod gets the same bytes. */
async function keep(db: Knex, messageId: number, envelope: string): Promise<string | undefined> {
  const { rows } = await db.raw(
    `update outbound_messages set envelope = coalesce(envelope, ?) where id = ? returning envelope`,
    [envelope, messageId],
  )
  return rows[0]?.envelope
}
