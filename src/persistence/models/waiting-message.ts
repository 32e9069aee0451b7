import { Model } from './model.js'

/** A message that waits for an unknown entity: the received body, never the plain text of a private message. */
export class WaitingMessage extends Model {
  static override tableName = 'waiting'

  declare id: number
  /** `post:<guid>`, `person:<address>` … */
  declare waitsFor: string
  /** Name of the job that processes it again. */
  declare name: string
  declare recipientGuid: string | null
  declare payload: string
  declare acceptedAt: Date
  /** SHA-256 of channel, recipient and payload, so that a message is stored once. */
  declare digest: Buffer
  /** Number of times it has waited. */
  declare times: number
  declare createdAt: Date
  /** Time of its last attempt. */
  declare dueAt: Date
  /** The host from which the missing entity is fetched; null: none. */
  declare askedOf: string | null
  /** The outbox row of the fetching job. */
  declare askedBy: number | null
}
