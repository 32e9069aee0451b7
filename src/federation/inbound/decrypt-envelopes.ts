import type { KeyObject } from 'node:crypto'
import { decryptPrivateKey } from '../../domain/accounts/private-keys.js'
import { findRecipients } from '../../persistence/inbound/find-recipients.js'
import type { Services } from '../../services/services.js'
import type { InboundMessage, InboundRecipient, RejectedMessage } from './batch.js'

/** A message with its readable envelope. */
export interface DecryptedMessage {
  readonly inbound: InboundMessage
  readonly envelope: string
  readonly recipient?: InboundRecipient | undefined
}

/** Decrypts private envelopes with the keys of their recipients, and returns public envelopes unchanged. */
export async function decryptEnvelopes(
  services: Services,
  messages: readonly InboundMessage[],
): Promise<{ readonly decrypted: readonly DecryptedMessage[]; readonly rejected: readonly RejectedMessage[] }> {
  const recipients = await findRecipientKeys(services, messages)
  const decryptedMessages: DecryptedMessage[] = []
  const encryptedMessages: {
    readonly inbound: InboundMessage
    readonly recipient: InboundRecipient
    readonly key: KeyObject
  }[] = []
  const rejected: RejectedMessage[] = []
  for (const inbound of messages) {
    const { envelope, recipientGuid } = inbound
    const recipientKey = recipients.get(recipientGuid ?? '')
    if (recipientGuid === undefined) decryptedMessages.push({ inbound, envelope })
    else if (recipientKey?.key !== undefined)
      encryptedMessages.push({ inbound, recipient: recipientKey.recipient, key: recipientKey.key })
    else rejected.push({ inbound, ...faultOf(recipientKey?.recipient) })
  }

  const envelopes =
    encryptedMessages.length === 0
      ? []
      : await services.crypto.decryptEnvelopes(
          encryptedMessages.map(({ inbound, key }) => ({ encrypted: inbound.envelope, recipientKey: key })),
        )
  for (const [index, { inbound, recipient }] of encryptedMessages.entries()) {
    const envelope = envelopes[index]
    if (envelope === undefined) {
      rejected.push({
        inbound,
        fault: 'DecryptionFailed',
        reason: `the key of ${recipient.address} does not decrypt the envelope`,
      })
    } else decryptedMessages.push({ inbound, envelope, recipient })
  }
  return { decrypted: decryptedMessages, rejected }
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
  services: Services,
  messages: readonly InboundMessage[],
): Promise<ReadonlyMap<string, RecipientKey>> {
  const guids = new Set(messages.flatMap(({ recipientGuid }) => recipientGuid ?? []))
  const rows = await findRecipients(services.db, [...guids])
  return new Map(
    rows.map(({ sealedPrivateKey: sealed, ...recipient }) => {
      return [
        recipient.guid,
        {
          recipient,
          key: sealed === null ? undefined : decryptPrivateKey(services.secrets, `user ${recipient.userId}`, sealed),
        },
      ]
    }),
  )
}
