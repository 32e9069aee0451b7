import { Model } from './model.js'

/** An application that may ask people for access to their account. */
export class Client extends Model {
  static override tableName = 'clients'
  static override jsonAttributes = ['metadata']

  declare id: number
  declare clientId: string
  declare secretHash: Buffer | null
  declare name: string | null
  declare redirectUris: string[]
  /** All else it said about itself when it registered. */
  declare metadata: Record<string, unknown>
  declare createdAt: Date
  declare updatedAt: Date
}
