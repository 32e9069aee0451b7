import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Config } from '../config/config.js'
import type { JobQueues } from '../jobs/queues/job-queues.js'
import type { Locales } from '../languages/locales.js'
import type { ReadReplica } from '../persistence/database/read-replica.js'
import type { RequestContext } from '../persistence/database/request-context.js'
import type { PictureStorage } from '../persistence/photos/picture-storage.js'
import type { PodCrypto } from './pod-crypto.js'
import type { RemotePodClient } from './remote-pod-client.js'
import type { Tracer } from './tracer.js'

/** The services of a process of this pod. Tests replace single ones. Other servers are called `remotePod`, and their rows `pods`. */
export interface Services {
  readonly config: Config
  readonly db: Knex
  /** Undefined: all reads go to the primary. */
  readonly replica?: ReadReplica
  /** Context of the request or job that uses these services, see `withRequestContext`; that of the process is empty. */
  readonly requestContext: RequestContext
  /** Undefined: no spans are created. */
  readonly tracer?: Tracer | undefined
  readonly jobs: JobQueues
  readonly crypto: PodCrypto
  readonly remotePods: RemotePodClient
  readonly secrets: Secrets
  /** The hosts that take the mail of a domain; none if they cannot be found. */
  readonly mailExchanges: (domain: string) => Promise<readonly string[]>
  readonly pictures: PictureStorage
  readonly locales: Locales
  /** The terms that people accept at sign-up; undefined: none, or this process shows no pages. */
  readonly terms: Terms | undefined
  readonly log: Logger
  now(): Date
}

/** Services for actions of moderators and admins. A use case that needs other services names its own set. */
export type ModerationServices = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'locales' | 'log' | 'now'>

/** Services for changes of queues, dead letters and the quarantine. */
export type OperationsServices = Pick<Services, 'db' | 'requestContext' | 'jobs' | 'log' | 'now'>

/** Services for metrics, scheduled work and checks of the pod itself. */
export type MonitoringServices = Pick<Services, 'config' | 'db' | 'log'>

/** Services for requests for documents of other pods. */
export type LookupServices = Pick<Services, 'crypto' | 'remotePods'>

/** The terms of the operator, which people accept when they sign up. */
export interface Terms {
  /** Markdown. */
  readonly text: string
  /** Changes with each change of the text. */
  readonly version: string
}

/** The services for one request or job, with its additions to transactions. Fields of the context that are given before stay. */
export function withRequestContext(services: Services, context: RequestContext): Services {
  return { ...services, requestContext: { ...services.requestContext, ...context } }
}

/** The services with a transaction as their database, for use cases that run in the transaction of their caller. */
export function withTransaction<Used extends Pick<Services, 'db'>>(
  services: Used,
  transaction: Knex.Transaction,
): Used & { readonly db: Knex.Transaction } {
  return { ...services, db: transaction }
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
  /** The result can be decrypted for the same owner only. */
  encrypt(text: string, owner: SecretOwner): Buffer
  /** Throws for another owner, and for texts that an earlier version encrypted without owner. */
  decrypt(encrypted: Buffer, owner: SecretOwner): string
  /** Decrypts a private key on the calling thread, and keeps the key until the services are closed. Undefined: it cannot be parsed. */
  decryptPrivateKey(encrypted: Buffer, owner: SecretOwner): KeyObject | undefined
  /** Decrypts a text that an earlier version encrypted without owner. */
  decryptUnbound(encrypted: Buffer): string
  /** Encrypts bytes. The result is 28 bytes longer (nonce and tag). */
  encryptBytes(bytes: Buffer, owner: SecretOwner): Buffer
  decryptBytes(encrypted: Buffer, owner: SecretOwner): Buffer
  /** HMAC-SHA256 of a text. MACs of one purpose say nothing about those of another. */
  mac(text: string, purpose: MacPurpose): Buffer
}

type MacPurpose = 'mailbox' | 'mail domain' | 'unsubscribe' | 'bounce' | 'form time' | 'take-over'
