import type { KeyObject } from 'node:crypto'
import type { ReadDocument, ReceivedDocument } from '../protocol/discovery/documents.js'
import type { Relayable } from '../protocol/entities/relayables.js'
import type { EnvelopeVerification, KnownKeys } from '../protocol/envelopes/verify-envelope.js'

/** The keys of a new person as PEM: the public one as SPKI, the private one as PKCS#8. */
export interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

/** Steps that run in threads: private-key operations, verification of batches, and parsing documents of other pods. */
export interface PodCrypto {
  /** Default: 4096 bits. */
  generateKeyPair(bits?: 2048 | 4096): Promise<KeyPair>
  /** Reads each envelope and verifies its signatures. Results are in order of the messages. */
  verifyEnvelopes(messages: readonly ReceivedEnvelope[], keys: KnownKeys): Promise<readonly EnvelopeVerification[]>
  /** Decrypts private envelopes; their signatures are not verified yet. `undefined`: cannot be decrypted. */
  decryptEnvelopes(messages: readonly ReceivedEncryptedEnvelope[]): Promise<readonly (string | undefined)[]>
  /** The author's signature of a relayable. */
  signRelayable(relayable: Relayable, key: KeyObject): Promise<string>
  /** The inner signature of an account migration. */
  signMigration(move: { readonly from: string; readonly to: string }, key: KeyObject): Promise<string>
  /** Signs the payload and writes its magic envelope. */
  signEnvelope(payload: string, sender: string, key: KeyObject): Promise<string>
  /** Signs each payload and writes its magic envelope; results are in the order of the messages. */
  signEnvelopes(messages: readonly UnsignedMessage[]): Promise<readonly string[]>
  /** Encrypts each envelope for each of its recipients; results are in their order. */
  encryptEnvelopes(envelopes: readonly EnvelopeToEncrypt[]): Promise<readonly (readonly string[])[]>
  /** Parses a document of another pod with a deadline. */
  readDocument(document: ReceivedDocument): Promise<ReadDocument>
}

export interface UnsignedMessage {
  readonly payload: string
  /** The address of the signer. */
  readonly sender: string
  readonly key: KeyObject
}

export interface EnvelopeToEncrypt {
  readonly envelope: string
  readonly recipientKeys: readonly KeyObject[]
}

export interface ReceivedEnvelope {
  readonly envelope: string
  /** The default for missing times of an entity. */
  readonly receivedAt: Date
}

export interface ReceivedEncryptedEnvelope {
  /** The body as it was received. */
  readonly encrypted: string
  readonly recipientKey: KeyObject
}
