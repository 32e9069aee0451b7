import { Model } from './model.js'

/** A message that needs something unknown: the body as its job carried it, never the plain text of a private one. */
export class WaitingMessage extends Model {
  static override tableName = 'waiting'

  declare id: number
  /** `post:<guid>`, `person:<address>` … */
  declare waitsFor: string
  /** The job it becomes again. */
  declare name: string
  declare recipientGuid: string | null
  declare payload: string
  declare acceptedAt: Date
  /** SHA-256 of channel, recipient and payload: the same message waits once. */
  declare digest: Buffer
  /** How often it has waited. */
  declare times: number
  declare createdAt: Date
  /** Then it becomes a job for the last time. */
  declare dueAt: Date
  /** The host that is asked for it; null: nobody is. */
  declare askedOf: string | null
  /** The outbox row of the job that asks. */
  declare askedBy: number | null
}
