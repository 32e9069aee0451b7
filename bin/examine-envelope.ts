import type { KeyObject } from 'node:crypto'
import { type EntityJson, entityToJson } from '../src/protocol/entities/entity-json.js'
import { isRelayable } from '../src/protocol/entities/registry.js'
import { decryptEnvelope } from '../src/protocol/envelopes/encrypted-envelope.js'
import { peekEnvelope } from '../src/protocol/envelopes/magic-envelope.js'
import { findSenderFault } from '../src/protocol/envelopes/sender-rules.js'
import {
  type EnvelopeVerification,
  type InnerSignature,
  type KnownKeys,
  verifyEnvelope,
} from '../src/protocol/envelopes/verify-envelope.js'
import { type FaultHandling, HANDLING_OF_FAULT, type ProtocolFault } from '../src/protocol/errors.js'

/** A recipient with their private key. */
interface EnvelopeRecipient {
  readonly address: string
  readonly key: KeyObject
}

/** The content of an envelope, or the reason of its rejection. */
export type Examined =
  | {
      readonly accepted: true
      readonly way: 'public' | 'private'
      readonly sender: string
      readonly author_signature: InnerSignature
      readonly entity: EntityJson
    }
  | {
      readonly accepted: false
      readonly way: 'public' | 'private'
      /** The sender named in the envelope, not verified. */
      readonly claimed_sender: string | null
      readonly fault: ProtocolFault
      /** How a pod handles such a message. */
      readonly outcome: FaultHandling
      readonly reason: string
    }

export interface ExaminationOptions {
  readonly keys: KnownKeys
  /** The recipient of a private message. */
  readonly recipient: EnvelopeRecipient | undefined
  readonly now: Date
}

type OpenedEnvelope = Extract<EnvelopeVerification, { readonly state: 'verified' }>

/** Performs all steps of receiving an envelope that need no database. */
export function examineEnvelope(text: string, { keys, recipient, now }: ExaminationOptions): Examined {
  // A private message is a JSON object, a public one XML.
  if (!text.trimStart().startsWith('{')) return examineOpen(text, 'public', { keys, recipient: undefined, now })
  const envelope = recipient && decryptEnvelope(text, recipient.key)
  if (envelope !== undefined) return examineOpen(envelope, 'private', { keys, recipient, now })
  const reason = recipient ? `${recipient.address} cannot decrypt it` : 'it is encrypted, and no recipient was named'
  return describeRefusal('private', undefined, 'DecryptionFailed', reason)
}

function examineOpen(envelope: string, way: Examined['way'], { keys, recipient, now }: ExaminationOptions): Examined {
  const openedEnvelope = verifyEnvelope(envelope, keys, now)
  const claimedSender = peekEnvelope(envelope).sender
  if (openedEnvelope.state === 'rejected')
    return describeRefusal(way, claimedSender, openedEnvelope.fault, openedEnvelope.reason)
  if (openedEnvelope.state === 'needs_key') {
    const fault = openedEnvelope.keyOwner === claimedSender ? 'SenderKeyNotFound' : 'PublicKeyNotFound'
    return describeRefusal(way, claimedSender, fault, `no key of ${openedEnvelope.keyOwner} was named`)
  }
  const fault = faultOf(openedEnvelope, recipient)
  if (fault !== undefined) return describeRefusal(way, claimedSender, fault, reasonOf(fault, openedEnvelope))
  const { sender, signature, entity } = openedEnvelope
  return { accepted: true, way, sender, author_signature: signature, entity: entityToJson(entity) }
}

/** Faults that depend on the data of this pod. */
const FAULTS_OF_UNKNOWN_DATA: ReadonlySet<ProtocolFault> = new Set<ProtocolFault>([
  'NotFetchable',
  'TargetNotFound',
  'ParentNotLocal',
  'ConversationNotFound',
])

function faultOf(opened: OpenedEnvelope, recipient: EnvelopeRecipient | undefined): ProtocolFault | undefined {
  const { entity, sender, signature } = opened
  const fault = findSenderFault({ entity, sender, signature, recipient: recipient?.address }, {})
  if (fault !== undefined && !FAULTS_OF_UNKNOWN_DATA.has(fault)) return fault
  // Only the author of the post needs no signature, and then is the sender as well.
  const isUnsigned = isRelayable(entity) && entity.author !== sender && signature !== 'valid'
  return isUnsigned ? 'SignatureVerificationFailed' : undefined
}

function reasonOf(fault: ProtocolFault, { sender, entity, signature }: OpenedEnvelope): string {
  switch (fault) {
    case 'InvalidSender':
      return `${sender} may not send this ${entity.type}`
    case 'NotPublic':
      return `this ${entity.type} may only be sent encrypted`
    case 'RecipientMismatch':
      return `this ${entity.type} is addressed to another person`
    case 'SignatureVerificationFailed':
      return `the signature inside this ${entity.type} is ${signature}`
    case 'UnknownEntity':
      return `no pod stores an ${entity.type}`
    default:
      return `this ${entity.type} is not allowed`
  }
}

function describeRefusal(
  way: Examined['way'],
  claimedSender: string | undefined,
  fault: ProtocolFault,
  reason: string,
): Examined {
  return {
    accepted: false,
    way,
    claimed_sender: claimedSender ?? null,
    fault,
    outcome: HANDLING_OF_FAULT[fault],
    reason,
  }
}
