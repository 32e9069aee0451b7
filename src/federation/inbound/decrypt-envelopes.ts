import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { LOOKUP_LIMITS } from '../../limits.js'
import { findRecipients, type RecipientRow } from '../../persistence/inbound/find-recipients.js'
import type { Pod } from '../../pod/pod.js'
import { readPrivateKey } from '../../protocol/signatures/rsa.js'
import type { InboundMessage, Recipient, RejectedMessage } from './batch.js'

/** A message with its readable envelope. */
export interface DecryptedMessage {
  readonly message: InboundMessage
  readonly envelope: string
  readonly recipient?: Recipient | undefined
}

/** Decrypts private envelopes with the keys of their recipients; public ones pass through. */
export async function decryptEnvelopes(
  pod: Pod,
  messages: readonly InboundMessage[],
): Promise<{ readonly decrypted: readonly DecryptedMessage[]; readonly rejected: readonly RejectedMessage[] }> {
  const recipients = await recipientsOf(pod, messages)
  const decrypted: DecryptedMessage[] = []
  const covered: { readonly message: InboundMessage; readonly recipient: Recipient; readonly key: KeyObject }[] = []
  const rejected: RejectedMessage[] = []
  for (const message of messages) {
    const { envelope, recipientGuid } = message
    const found = recipients.get(recipientGuid ?? '')
    if (recipientGuid === undefined) decrypted.push({ message, envelope })
    else if (found?.key !== undefined) covered.push({ message, recipient: found.recipient, key: found.key })
    else rejected.push({ message, ...faultOf(found?.recipient) })
  }

  const envelopes =
    covered.length === 0
      ? []
      : await pod.crypto.openEncryptedEnvelopes(
          covered.map(({ message, key }) => ({ encrypted: message.envelope, recipientKey: key })),
        )
  for (const [index, { message, recipient }] of covered.entries()) {
    const envelope = envelopes[index]
    if (envelope === undefined) {
      rejected.push({ message, fault: 'DecryptionFailed', reason: `the key of ${recipient.address} does not open it` })
    } else decrypted.push({ message, envelope, recipient })
  }
  return { decrypted, rejected }
}

function faultOf(recipient: Recipient | undefined): Pick<RejectedMessage, 'fault' | 'reason'> {
  if (recipient === undefined) return { fault: 'DecryptionFailed', reason: 'it is for nobody who lives here' }
  return { fault: 'RecipientClosed', reason: `${recipient.address} has left, and so has the key` }
}

interface Keyholder {
  readonly recipient: Recipient
  /** Undefined: it went with a closed account. */
  readonly key: KeyObject | undefined
}

async function recipientsOf(pod: Pod, messages: readonly InboundMessage[]): Promise<ReadonlyMap<string, Keyholder>> {
  const guids = new Set(messages.flatMap(({ recipientGuid }) => recipientGuid ?? []))
  const rows = await findRecipients(pod.db, [...guids])
  return new Map(
    rows.map(({ sealedPrivateKey: sealed, ...recipient }) => {
      return [recipient.guid, { recipient, key: sealed === null ? undefined : keyOf(pod, recipient, sealed) }]
    }),
  )
}

/** By what is stored, so that nobody gets the key of somebody else. Unsealing and reading takes longer than a signature check. */
const unsealed = new LRUCache<string, KeyObject>({ max: LOOKUP_LIMITS.privateKeysKept })

function keyOf(
  { secrets }: Pick<Pod, 'secrets'>,
  { address, userId }: Pick<RecipientRow, 'address' | 'userId'>,
  sealed: Buffer,
): KeyObject {
  const name = `${userId} ${sealed.toString('base64')}`
  const key = unsealed.get(name) ?? readPrivateKey(secrets.unseal(sealed, `user ${userId}`))
  if (key === undefined) throw new Error(`The private key of ${address} cannot be used.`)
  unsealed.set(name, key)
  return key
}
