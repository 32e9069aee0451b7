import { Model } from './model.js'

/** An invitation for one sign-up. Only the SHA-256 of its code is stored. */
export class Invitation extends Model {
  static override tableName = 'invitations'

  declare id: number
  declare codeHash: Buffer
  declare note: string | null
  declare expiresAt: Date
  declare usedAt: Date | null
  declare userId: number | null
  declare createdAt: Date
}
