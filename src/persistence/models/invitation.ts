import { Model } from './model.js'

/** An invitation for some sign-ups. Only the SHA-256 of its code is stored. */
export class Invitation extends Model {
  static override tableName = 'invitations'

  declare id: number
  declare codeHash: Buffer
  declare note: string | null
  declare expiresAt: Date
  /** Allowed sign-ups, and sign-ups so far. */
  declare uses: number
  declare used: number
  /** A user name, or `command`. */
  declare createdBy: string
  /** The user who has created it; null: a moderator, an admin or a command. */
  declare inviterId: number | null
  /** The first use. */
  declare usedAt: Date | null
  declare recalledAt: Date | null
  declare createdAt: Date
}
