import type { KeyObject } from 'node:crypto'
import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import type { DueDelivery } from '../../persistence/outbound/due-deliveries.js'
import type { Services } from '../../services/services.js'
import { parseStoredKey } from '../inbound/find-signers.js'
import { signMessages } from './sign-messages.js'

/** A delivery with the request to send, or with the fault that prevents it. */
export type PreparedDelivery = { readonly due: DueDelivery } & (
  | { readonly path: string; readonly contentType: string; readonly body: string }
  | { readonly fault: 'internal' | 'no_key' }
)

/** Signs and encrypts the messages of due deliveries in threads. Deliveries of retracted messages are left out. */
export async function prepareDeliveries(
  services: Services,
  due: readonly DueDelivery[],
): Promise<readonly PreparedDelivery[]> {
  const unencryptedDeliveries = due.filter(({ isPublic, encryptedEnvelope }) => isPublic || encryptedEnvelope === null)
  const signedMessages = await signMessagesOf(services, unencryptedDeliveries)
  const encryptedBodies = await encryptForRecipients(services, unencryptedDeliveries, signedMessages)
  return due.flatMap((one): PreparedDelivery[] => {
    if (!one.isPublic && one.encryptedEnvelope !== null) return [privateDelivery(one, one.encryptedEnvelope)]
    const { envelope, fault } = signedMessages.get(one.messageId) ?? {}
    if (fault !== undefined) return [{ due: one, fault }]
    if (envelope === undefined) return []
    if (one.isPublic) return [publicDelivery(one, envelope)]
    const { body, fault: encryptionFault = 'no_key' } = encryptedBodies.get(one.id) ?? {}
    return [body === undefined ? { due: one, fault: encryptionFault } : privateDelivery(one, body)]
  })
}

/** The envelope of a message, or the fault that prevents it. Both unset: the message was retracted. */
interface SignedOrFault {
  readonly envelope?: string | undefined
  readonly fault?: 'internal'
}

interface EncryptedOrFault {
  readonly body?: string | undefined
  readonly fault?: 'internal'
}

/** A message that cannot be signed does not stop the others. */
async function signMessagesOf(
  services: Services,
  due: readonly DueDelivery[],
): Promise<ReadonlyMap<number, SignedOrFault>> {
  const ids = [...new Set(due.map(({ messageId }) => messageId))]
  const signedMessages = await signMessages(services, ids)
  return new Map(
    [...signedMessages].map(([id, { envelope, error }]) => [
      id,
      error === undefined ? { envelope } : { fault: faultOf(services, error, id) },
    ]),
  )
}

function publicDelivery(due: DueDelivery, body: string): PreparedDelivery {
  return { due, path: '/receive/public', contentType: 'application/magic-envelope+xml', body }
}

function privateDelivery(due: DueDelivery, body: string): PreparedDelivery {
  const path = `/receive/users/${encodeURIComponent(due.personGuid ?? '')}`
  return { due, path, contentType: 'application/json', body }
}

interface EncryptedMessage {
  readonly envelope: string
  readonly recipients: { readonly id: number; readonly key: KeyObject }[]
}

/** The encrypted envelope for each recipient with a key, by the id of the delivery; or the fault that prevents it. */
async function encryptForRecipients(
  services: Services,
  due: readonly DueDelivery[],
  signed: ReadonlyMap<number, SignedOrFault>,
): Promise<ReadonlyMap<number, EncryptedOrFault>> {
  const messages = new Map<number, EncryptedMessage>()
  for (const { id, messageId, isPublic, publicKey } of due) {
    const envelope = signed.get(messageId)?.envelope
    const key = isPublic || publicKey === null ? undefined : parseStoredKey(publicKey)
    if (envelope === undefined || key === undefined) continue
    const message = messages.get(messageId) ?? { envelope, recipients: [] }
    messages.set(messageId, message)
    message.recipients.push({ id, key })
  }
  if (messages.size === 0) return new Map()
  return encryptMessages(services, [...messages.values()])
}

async function encryptMessages(
  services: Services,
  messages: readonly EncryptedMessage[],
): Promise<ReadonlyMap<number, EncryptedOrFault>> {
  const ids = messages.flatMap(({ recipients }) => recipients.map(({ id }) => id))
  try {
    const bodies = await services.crypto.encryptEnvelopes(
      messages.map(({ envelope, recipients }) => ({ envelope, recipientKeys: recipients.map(({ key }) => key) })),
    )
    const bodiesInOrder = bodies.flat()
    return new Map(ids.map((id, index) => [id, { body: bodiesInOrder[index] }]))
  } catch (error) {
    services.log.error({ err: error }, 'outbound messages could not be encrypted')
    return new Map(ids.map((id) => [id, { fault: 'internal' }]))
  }
}

function faultOf(services: Services, error: unknown, message: number): 'internal' {
  if (isDatabaseUnavailable(error)) throw error
  services.log.error({ err: error, message }, 'outbound message could not be signed')
  return 'internal'
}
