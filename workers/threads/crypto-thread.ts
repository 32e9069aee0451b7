import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import {
  type ReadDocument,
  type ReceivedDocument,
  readDocument as read,
} from '../../src/protocol/discovery/documents.js'
import type { Relayable } from '../../src/protocol/entities/relayables.js'
import { decryptEnvelope, writeEncryptedEnvelope } from '../../src/protocol/envelopes/encrypted-envelope.js'
import { signMagicEnvelope } from '../../src/protocol/envelopes/magic-envelope.js'
import {
  type EnvelopeVerification,
  type KnownKeys,
  verifyEnvelope,
} from '../../src/protocol/envelopes/verify-envelope.js'
import { signMigration as signMove } from '../../src/protocol/signatures/migration-signature.js'
import { signRelayable as sign } from '../../src/protocol/signatures/relayable-signature.js'
import type {
  EnvelopeToEncrypt,
  KeyPair,
  ReceivedEncryptedEnvelope,
  ReceivedEnvelope,
  UnsignedMessage,
} from '../../src/services/pod-crypto.js'

/** The tasks of the pool are the named exports. Each works on a batch: a task for one message costs more than it saves. */
export function generateKeyPair({ bits }: { readonly bits: number }): KeyPair {
  return generateKeyPairSync('rsa', {
    modulusLength: bits,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })
}

/** One result for each message, in order. */
export function verifyEnvelopes(task: {
  readonly messages: readonly ReceivedEnvelope[]
  readonly keys: KnownKeys
}): EnvelopeVerification[] {
  return task.messages.map(({ envelope, receivedAt }) => verifyEnvelope(envelope, task.keys, receivedAt))
}

/** Decrypts envelopes; their signatures are not verified yet. `undefined`: cannot be decrypted. */
export function decryptEnvelopes(task: {
  readonly messages: readonly ReceivedEncryptedEnvelope[]
}): (string | undefined)[] {
  return task.messages.map(({ encrypted, recipientKey }) => decryptEnvelope(encrypted, recipientKey))
}

export function signRelayable(task: { readonly relayable: Relayable; readonly key: KeyObject }): string {
  return sign(task.relayable, task.key)
}

export function signMigration(task: { readonly from: string; readonly to: string; readonly key: KeyObject }): string {
  return signMove(task, task.key)
}

export function signEnvelope(task: {
  readonly payload: string
  readonly sender: string
  readonly key: KeyObject
}): string {
  return signMagicEnvelope(task.payload, task.sender, task.key)
}

export function signEnvelopes(task: { readonly messages: readonly UnsignedMessage[] }): string[] {
  return task.messages.map(({ payload, sender, key }) => signMagicEnvelope(payload, sender, key))
}

/** Encrypts each envelope for each of its recipients. */
export function encryptEnvelopes(task: { readonly envelopes: readonly EnvelopeToEncrypt[] }): string[][] {
  return task.envelopes.map(({ envelope, recipientKeys }) =>
    recipientKeys.map((key) => writeEncryptedEnvelope(envelope, key)),
  )
}

export function readDocument(document: ReceivedDocument): ReadDocument {
  return read(document)
}
