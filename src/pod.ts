import type { Knex } from 'knex'
import type { Logger } from 'pino'
import type { Config } from './config.js'
import type { JobQueues } from './jobs/queues.js'

/** What a use case may touch. Tests hand in a pod with one piece replaced. */
export interface Pod {
  readonly config: Config
  readonly db: Knex
  readonly jobs: JobQueues
  readonly crypto: PodCrypto
  readonly secrets: Secrets
  readonly log: Logger
  now(): Date
}

/** A new person's keys, as PEM texts: SPKI for everybody, PKCS#8 for nobody but us. */
export interface KeyPair {
  readonly publicKey: string
  readonly privateKey: string
}

/** Private-key work, as whole steps that run in threads: an event loop never does any. */
export interface PodCrypto {
  generateKeyPair(): Promise<KeyPair>
}

/** Seals what must not be readable in a dump of the database. */
export interface Secrets {
  seal(text: string): Buffer
  unseal(sealed: Buffer): string
}
