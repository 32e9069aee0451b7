import { decryptEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { readMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import { type EnvelopeVerification, verifyEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { ProtocolError } from '../../src/protocol/errors.js'
import type { VectorKeys } from './vector-keys.js'

/** What is taken for the time of receipt; the vectors leave open what depends on it. */
export const receivedAt = new Date('2024-05-06T07:08:09Z')

export type OpenVector = Extract<EnvelopeVerification, { readonly state: 'verified' }>

/** Opens an envelope with the keys of the file. Other persons cannot be discovered. */
export function openVector(envelope: string, keys: VectorKeys): OpenVector {
  const opened = verifyEnvelope(envelope, keys.public, receivedAt)
  switch (opened.state) {
    case 'verified':
      return opened
    case 'rejected':
      throw new ProtocolError(opened.fault, opened.reason)
    case 'needs_key': {
      const isSender = opened.keyOwner === readMagicEnvelope(envelope).sender.toLowerCase()
      throw new ProtocolError(
        isSender ? 'SenderKeyNotFound' : 'PublicKeyNotFound',
        `nobody is called ${opened.keyOwner}`,
      )
    }
  }
}

export function openPrivateVector(input: string, recipient: string, keys: VectorKeys): OpenVector {
  const envelope = decryptEnvelope(input, keys.of(recipient).privateKey)
  if (envelope === undefined) throw new ProtocolError('DecryptionFailed', 'not readable')
  return openVector(envelope, keys)
}
