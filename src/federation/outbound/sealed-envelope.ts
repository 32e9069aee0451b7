import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import { loadPodAccountKey } from '../../domain/accounts/pod-account.js'
import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import { OutboundMessage } from '../../persistence/models/outbound-message.js'
import type { Pod, PodCrypto } from '../../pod/pod.js'
import { openSingleFlight, type SingleFlight } from '../../throttling/single-flight.js'

/** Running signatures of each open pod, so that concurrent callers share one. */
const signing = new WeakMap<PodCrypto, SingleFlight<number, string | undefined>>()

/** The envelope of a message, signed once and stored for all pods and all retries. Undefined: the message was retracted. */
export async function getSealedEnvelope(pod: Pod, messageId: number): Promise<string | undefined> {
  const singleFlight = signing.get(pod.crypto) ?? openSingleFlight<number, string | undefined>()
  signing.set(pod.crypto, singleFlight)
  return singleFlight.run(messageId, () => readOrSeal(pod, messageId))
}

async function readOrSeal(pod: Pod, messageId: number): Promise<string | undefined> {
  const message = await OutboundMessage.query(pod.db).findById(messageId).withGraphFetched('sender')
  if (message === undefined || message.envelope !== null) return message?.envelope ?? undefined
  const { address, key } = await loadSigner(pod, message)
  const envelope = await pod.crypto.sealEnvelope(message.entity, address, key)
  return storeEnvelope(pod.db, messageId, envelope)
}

async function loadSigner(
  pod: Pod,
  { senderId, sender }: OutboundMessage,
): Promise<{ readonly address: string; readonly key: KeyObject }> {
  if (senderId === null) return loadPodAccountKey(pod)
  if (sender === undefined) throw new Error(`Person ${senderId} is missing.`)
  return { address: sender.address, key: await loadPrivateKey(pod, senderId) }
}

/** Returns the stored envelope: if another process has signed first, all pods get its bytes. */
async function storeEnvelope(db: Knex, messageId: number, envelope: string): Promise<string | undefined> {
  const { rows } = await db.raw(
    `update outbound_messages set envelope = coalesce(envelope, ?) where id = ? returning envelope`,
    [envelope, messageId],
  )
  return rows[0]?.envelope
}
