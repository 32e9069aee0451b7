import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Config } from '../config/config.js'
import type { JobQueues } from '../jobs/queues/job-queues.js'
import type { ReadReplica } from '../persistence/database/read-replica.js'
import type { ReadDocument, ReceivedDocument } from '../protocol/discovery/documents.js'
import type { Relayable } from '../protocol/entities/relayables.js'
import type { KnownKeys, Opened } from '../protocol/envelopes/open-envelope.js'

/** What a use case may touch. Tests hand in a pod with one piece replaced. */
export interface Pod {
  readonly config: Config
  readonly db: Knex
  /** Not set: there is none, and everything is read where it is written. */
  readonly replica?: ReadReplica
  readonly jobs: JobQueues
  readonly crypto: PodCrypto
  readonly remote: RemotePods
  readonly secrets: Secrets
  readonly log: Logger
  now(): Date
}

/** A new person's keys, as PEM texts: SPKI for everybody, PKCS#8 for nobody but us. */
export interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

/** Whole steps that run in threads: an event loop does no private-key work, verifies no batch of signatures and reads no document of another pod. */
export interface PodCrypto {
  generateKeyPair(): Promise<KeyPair>
  /** Reads each envelope, verifies it and what is signed inside. One answer for each, in order. */
  openEnvelopes(messages: readonly SealedMessage[], keys: KnownKeys): Promise<readonly Opened[]>
  /** Decrypts private envelopes; their signatures are not verified yet. `undefined`: cannot be decrypted. */
  openEncryptedEnvelopes(messages: readonly EncryptedMessage[]): Promise<readonly (string | undefined)[]>
  /** The mark of its author that a relayable carries wherever it goes. */
  signRelayable(relayable: Relayable, key: KeyObject): Promise<string>
  /** A payload in an envelope with the signature of its sender. */
  sealEnvelope(payload: string, sender: string, key: KeyObject): Promise<string>
  /** Encrypts the envelope for each recipient with their key. */
  encryptEnvelope(envelope: string, recipientKeys: readonly KeyObject[]): Promise<readonly string[]>
  /** Anybody can publish any document, so that no event loop reads one. */
  readDocument(document: ReceivedDocument): Promise<ReadDocument>
}

export interface SealedMessage {
  readonly envelope: string
  /** Stands in for the times that an entity does not tell. */
  readonly receivedAt: Date
}

export interface EncryptedMessage {
  /** The body as it came. */
  readonly encrypted: string
  readonly recipientKey: KeyObject
}

/** The only way out to other pods. What has a status is an answer; everything else is a RemotePodError. */
export interface RemotePods {
  get(url: string | URL, options: GetOptions): Promise<RemoteAnswer>
  /** Follows no redirect and reads no body. */
  post(url: string | URL, contentType: string, body: string | Buffer, options?: AskOptions): Promise<DeliveryAnswer>
}

interface AskOptions {
  /** Milliseconds for all of it, redirects and waiting for a turn included. */
  readonly deadline?: number
  readonly signal?: AbortSignal | undefined
}

export interface GetOptions extends AskOptions {
  readonly accept?: string
  /** Of the body, packed as well as unpacked. */
  readonly maxBytes: number
  /** How many are followed; one more is a fault. */
  readonly redirects?: number
  /** A redirect to another host is a fault. */
  readonly sameHost?: boolean
  /** Where plain http is open, it is tried when https does not work. */
  readonly orPlain?: boolean
}

export interface RemoteAnswer {
  readonly status: number
  /** Where the answer came from, after redirects. */
  readonly url: URL
  readonly contentType: string | undefined
  /** Empty unless the status is a good one: nobody needs the rest. */
  readonly body: Buffer
}

export interface DeliveryAnswer {
  readonly status: number
  /** Seconds. */
  readonly retryAfter: number | undefined
}

/** Seals what must not be readable in a dump of the database. */
/** Whose a sealed text is. */
export type SecretOwner = `user ${number}` | 'id tokens'

export interface Secrets {
  /** It opens for the same owner only. */
  seal(text: string, owner: SecretOwner): Buffer
  /** Throws for another owner, and for what an earlier version has sealed without one. */
  unseal(sealed: Buffer, owner: SecretOwner): string
  /** Opens what an earlier version has sealed, so that it can be sealed for its owner. */
  unsealUnbound(sealed: Buffer): string
}
