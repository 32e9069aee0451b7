import type { KeyObject } from 'node:crypto'
import { decryptPrivateKey } from '../../domain/accounts/private-keys.js'
import { findRecipients } from '../../persistence/inbound/find-recipients.js'
import type { Pod } from '../../pod/pod.js'
import type { InboundMessage, InboundRecipient, RejectedMessage } from './batch.js'

/** A message with its readable envelope. */
export interface DecryptedMessage {
  readonly message: InboundMessage
  readonly envelope: string
  readonly recipient?: InboundRecipient | undefined
}

/** Decrypts private envelopes with the keys of their recipients; public ones pass through. */
export async function decryptEnvelopes(
  pod: Pod,
  messages: readonly InboundMessage[],
): Promise<{ readonly decrypted: readonly DecryptedMessage[]; readonly rejected: readonly RejectedMessage[] }> {
  const recipients = await findRecipientKeys(pod, messages)
  const decrypted: DecryptedMessage[] = []
  const encrypted: {
    readonly message: InboundMessage
    readonly recipient: InboundRecipient
    readonly key: KeyObject
  }[] = []
  const rejected: RejectedMessage[] = []
  for (const message of messages) {
    const { envelope, recipientGuid } = message
    const recipientKey = recipients.get(recipientGuid ?? '')
    if (recipientGuid === undefined) decrypted.push({ message, envelope })
    else if (recipientKey?.key !== undefined)
      encrypted.push({ message, recipient: recipientKey.recipient, key: recipientKey.key })
    else rejected.push({ message, ...faultOf(recipientKey?.recipient) })
  }

  const envelopes =
    encrypted.length === 0
      ? []
      : await pod.crypto.openEncryptedEnvelopes(
          encrypted.map(({ message, key }) => ({ encrypted: message.envelope, recipientKey: key })),
        )
  for (const [index, { message, recipient }] of encrypted.entries()) {
    const envelope = envelopes[index]
    if (envelope === undefined) {
      rejected.push({
        message,
        fault: 'DecryptionFailed',
        reason: `the key of ${recipient.address} does not decrypt the envelope`,
      })
    } else decrypted.push({ message, envelope, recipient })
  }
  return { decrypted, rejected }
}

function faultOf(recipient: InboundRecipient | undefined): Pick<RejectedMessage, 'fault' | 'reason'> {
  if (recipient === undefined) return { fault: 'DecryptionFailed', reason: 'the recipient is not a local person' }
  return { fault: 'RecipientClosed', reason: `the account ${recipient.address} is closed, and its key is deleted` }
}

interface RecipientKey {
  readonly recipient: InboundRecipient
  /** Undefined: the key was deleted with the account. */
  readonly key: KeyObject | undefined
}

async function findRecipientKeys(
  pod: Pod,
  messages: readonly InboundMessage[],
): Promise<ReadonlyMap<string, RecipientKey>> {
  const guids = new Set(messages.flatMap(({ recipientGuid }) => recipientGuid ?? []))
  const rows = await findRecipients(pod.db, [...guids])
  return new Map(
    rows.map(({ sealedPrivateKey: sealed, ...recipient }) => {
      return [
        recipient.guid,
        {
          recipient,
          key: sealed === null ? undefined : decryptPrivateKey(pod.secrets, `user ${recipient.userId}`, sealed),
        },
      ]
    }),
  )
}
