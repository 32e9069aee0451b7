import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Config } from '../config/config.js'
import type { JobQueues } from '../jobs/queues/job-queues.js'
import type { Locales } from '../languages/locales.js'
import type { ReadReplica } from '../persistence/database/read-replica.js'
import type { RequestContext } from '../persistence/database/request-context.js'
import type { ProbeStep } from '../persistence/models/pod.js'
import type { PodClock } from '../persistence/operations/processes.js'
import type { PictureStorage } from '../persistence/photos/picture-storage.js'
import type { ReadDocument, ReceivedDocument } from '../protocol/discovery/documents.js'
import type { Relayable } from '../protocol/entities/relayables.js'
import type { KnownKeys, VerifiedEnvelope } from '../protocol/envelopes/verify-envelope.js'

/** The services of a pod. Tests replace single ones. */
export interface Pod {
  readonly config: Config
  readonly db: Knex
  /** Undefined: all reads go to the primary. */
  readonly replica?: ReadReplica
  /** Of the request or job that uses this pod, see `withRequestContext`; the pod of the process has none. */
  readonly requestContext?: RequestContext
  /** Undefined: no spans are made. */
  readonly tracer?: Tracer | undefined
  readonly jobs: JobQueues
  readonly crypto: PodCrypto
  readonly remote: RemotePods
  readonly secrets: Secrets
  /** The hosts that take the mail of a domain; none if they cannot be found. */
  readonly mailExchanges: (domain: string) => Promise<readonly string[]>
  readonly pictures: PictureStorage
  readonly locales: Locales
  /** What people accept when they sign up; undefined: nothing, or this process shows no pages. */
  readonly terms: Terms | undefined
  readonly log: Logger
  now(): Date
}

/** The terms of the operator, which people accept when they sign up. */
export interface Terms {
  /** Markdown. */
  readonly text: string
  /** Changes with each change of the text. */
  readonly version: string
}

/** The pod for one request or job, with what its transactions add. Fields of the context that are given before stay. */
export function withRequestContext(pod: Pod, context: RequestContext): Pod {
  return { ...pod, requestContext: { ...pod.requestContext, ...context } }
}

/** Makes spans for OpenTelemetry. */
export interface Tracer {
  /** Undefined: none of the traces is sampled. */
  begin(name: string, options: SpanOptions): ActiveSpan | undefined
}

export interface SpanOptions {
  readonly kind: SpanKind
  /** Of the request or the messages; work of several traces has a trace of its own. */
  readonly traces: readonly (string | null | undefined)[]
  /** The span of the request to which the trace belongs. */
  readonly isRequest?: boolean
  /** The span is linked to the requests of its traces. */
  readonly isBatch?: boolean
  /** Milliseconds since 1970. Default: now. */
  readonly since?: number
  readonly attributes?: SpanAttributes
}

export type SpanKind = 'internal' | 'server' | 'client' | 'consumer'

/** All that a span may say: never texts, tokens, addresses of people, or queries. */
export interface SpanAttributes {
  readonly method?: string
  /** A pattern, without guids. */
  readonly route?: string
  readonly status?: number
  readonly host?: string
  readonly queue?: string
  readonly job?: string
  readonly entity?: string
  readonly outcome?: string
  readonly fault?: string
  readonly messages?: number
  readonly stored?: number
  readonly waiting?: number
  readonly rejected?: number
  readonly ignored?: number
}

export interface ActiveSpan {
  set(attributes: SpanAttributes): void
  beginChild(name: string): ActiveSpan
  end(result?: { readonly hasFailed?: boolean }): void
}

/** The keys of a new person as PEM: the public one as SPKI, the private one as PKCS#8. */
export interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

/** Steps that run in threads: private-key operations, verification of batches, and parsing documents of other pods. */
export interface PodCrypto {
  /** Default: 4096 bits. */
  generateKeyPair(bits?: 2048 | 4096): Promise<KeyPair>
  /** Opens each envelope and verifies its signatures. Results are in order of the messages. */
  openEnvelopes(messages: readonly ReceivedEnvelope[], keys: KnownKeys): Promise<readonly VerifiedEnvelope[]>
  /** Decrypts private envelopes; their signatures are not verified yet. `undefined`: cannot be decrypted. */
  openEncryptedEnvelopes(messages: readonly ReceivedEncryptedEnvelope[]): Promise<readonly (string | undefined)[]>
  /** The author's signature of a relayable. */
  signRelayable(relayable: Relayable, key: KeyObject): Promise<string>
  /** The inner signature of an account migration. */
  signMigration(move: { readonly from: string; readonly to: string }, key: KeyObject): Promise<string>
  /** Signs the payload and writes its magic envelope. */
  sealEnvelope(payload: string, sender: string, key: KeyObject): Promise<string>
  /** The same for any number of messages; results are in their order. */
  sealEnvelopes(messages: readonly UnsealedMessage[]): Promise<readonly string[]>
  /** Encrypts each envelope for each of its recipients; results are in their order. */
  encryptEnvelopes(envelopes: readonly EnvelopeToEncrypt[]): Promise<readonly (readonly string[])[]>
  /** Parses a document of another pod with a deadline. */
  readDocument(document: ReceivedDocument): Promise<ReadDocument>
}

export interface UnsealedMessage {
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

/** All requests to other pods. A response with a status is an answer; any other outcome throws a RemotePodError. */
export interface RemotePods {
  get(url: string | URL, options: GetOptions): Promise<RemoteAnswer>
  /** Follows no redirect and reads no body. */
  post(url: string | URL, contentType: string, body: string | Buffer, options?: RequestOptions): Promise<DeliveryAnswer>
  /** Connects step by step, as a request does. Isolated pods and those of tests may be without it. */
  probe?(url: string | URL): Promise<readonly ProbeStep[]>
  /** The clocks of the pods that have answered last. */
  readClock?(): PodClock | undefined
}

interface RequestOptions {
  /** Milliseconds in all, redirects and waiting in the queue included. */
  readonly deadline?: number
  readonly signal?: AbortSignal | undefined
}

export interface GetOptions extends RequestOptions {
  readonly accept?: string
  /** Limit of the body, both compressed and decompressed. */
  readonly maxBytes: number
  /** Number of redirects to follow; one more is an error. */
  readonly redirects?: number
  /** A redirect to another host is an error. */
  readonly mustStayOnHost?: boolean
  /** Falls back to http if https fails and plain http is allowed for the host. */
  readonly mayUsePlain?: boolean
}

export interface RemoteAnswer {
  readonly status: number
  /** Where the answer came from, after redirects. */
  readonly url: URL
  readonly contentType: string | undefined
  /** Empty unless the status is 2xx. */
  readonly body: Buffer
}

export interface DeliveryAnswer {
  readonly status: number
  /** Seconds. */
  readonly retryAfter: number | undefined
}

/** The owner of a sealed text, bound as additional authenticated data. */
export type SecretOwner =
  | `user ${number}`
  | `totp ${number}`
  | 'id tokens'
  | 'pod account'
  | `take-over ${number}`
  | 'pepper'
  | 'queue store'
  | `import ${string}`

/** Encrypts secrets in the database, so that a dump does not reveal them. */
export interface Secrets {
  /** The result opens for the same owner only. */
  seal(text: string, owner: SecretOwner): Buffer
  /** Throws for another owner, and for texts that an earlier version sealed without owner. */
  unseal(sealed: Buffer, owner: SecretOwner): string
  /** Opens a text that an earlier version sealed without owner. */
  unsealUnbound(sealed: Buffer): string
  /** The same for bytes. The result is 28 bytes longer (nonce and tag). */
  sealBytes(bytes: Buffer, owner: SecretOwner): Buffer
  unsealBytes(sealed: Buffer, owner: SecretOwner): Buffer
  /** HMAC-SHA256 of a text. MACs of one purpose say nothing about those of another. */
  mac(text: string, purpose: MacPurpose): Buffer
}

type MacPurpose = 'mailbox' | 'mail domain' | 'unsubscribe' | 'bounce' | 'form time' | 'take-over'
