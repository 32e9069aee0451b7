import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'
import type { Pod } from '../../pod/pod.js'
import { parsePublicKey } from '../inbound/find-signers.js'
import { getSealedEnvelope } from './sealed-envelope.js'

/** A delivery with the request to send, or with the fault that prevents it. */
export type SealedDelivery = { readonly due: DueDelivery } & (
  | { readonly path: string; readonly contentType: string; readonly body: string }
  | { readonly fault: 'internal' | 'no_key' }
)

/** Seals and encrypts due deliveries message by message, in threads. Deliveries of retracted messages are left out. */
export async function sealDeliveries(pod: Pod, due: readonly DueDelivery[]): Promise<readonly SealedDelivery[]> {
  const messages = [...new Set(due.map(({ messageId }) => messageId))]
  const sealed = await Promise.all(
    messages.map((id) => {
      const ofMessage = due.filter(({ messageId }) => messageId === id)
      return sealMessage(pod, id, ofMessage).catch((error) => unsealedDeliveries(pod, ofMessage, error))
    }),
  )
  const positions = new Map(due.map(({ id }, position) => [id, position]))
  const positionOf = ({ due }: SealedDelivery) => positions.get(due.id) ?? 0
  return sealed.flat().sort((one, other) => positionOf(one) - positionOf(other))
}

async function sealMessage(
  pod: Pod,
  messageId: number,
  due: readonly DueDelivery[],
): Promise<readonly SealedDelivery[]> {
  const unencrypted = due.filter(({ isPublic, encryptedEnvelope }) => isPublic || encryptedEnvelope === null)
  const envelope = unencrypted.length === 0 ? undefined : await getSealedEnvelope(pod, messageId)
  const encryptedEnvelopes =
    envelope === undefined ? new Map<number, string>() : await encryptForRecipients(pod, envelope, unencrypted)
  return due.flatMap((one): SealedDelivery[] => {
    if (one.isPublic) return envelope === undefined ? [] : [publicDelivery(one, envelope)]
    const encryptedEnvelope = one.encryptedEnvelope ?? encryptedEnvelopes.get(one.id)
    if (encryptedEnvelope !== undefined) return [privateDelivery(one, encryptedEnvelope)]
    return envelope === undefined ? [] : [{ due: one, fault: 'no_key' }]
  })
}

function publicDelivery(due: DueDelivery, body: string): SealedDelivery {
  return { due, path: '/receive/public', contentType: 'application/magic-envelope+xml', body }
}

function privateDelivery(due: DueDelivery, body: string): SealedDelivery {
  const path = `/receive/users/${encodeURIComponent(due.personGuid ?? '')}`
  return { due, path, contentType: 'application/json', body }
}

/** The encrypted envelope for each recipient with a key, by the id of the delivery. */
async function encryptForRecipients(
  pod: Pod,
  envelope: string,
  due: readonly DueDelivery[],
): Promise<Map<number, string>> {
  const recipients = due.flatMap(({ id, publicKey }) => {
    const key = publicKey === null ? undefined : parsePublicKey(publicKey)
    return key === undefined ? [] : [{ id, key }]
  })
  if (recipients.length === 0) return new Map()
  const encryptedEnvelopes = await pod.crypto.encryptEnvelope(
    envelope,
    recipients.map(({ key }) => key),
  )
  return new Map(
    recipients.flatMap(({ id }, index) =>
      encryptedEnvelopes[index] === undefined ? [] : [[id, encryptedEnvelopes[index]]],
    ),
  )
}

/** A message that cannot be sealed does not block the other messages. */
function unsealedDeliveries(pod: Pod, due: readonly DueDelivery[], error: unknown): readonly SealedDelivery[] {
  if (isDatabaseUnavailable(error)) throw error
  pod.log.error({ err: error, message: due[0]?.messageId }, 'outbound message could not be sealed')
  return due.map((one) => ({ due: one, fault: 'internal' }))
}
