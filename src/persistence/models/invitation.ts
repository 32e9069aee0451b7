import { Model } from './model.js'

/** One person may sign up with it, once. Only the SHA-256 of its code is kept. */
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
