import { Model } from './model.js'

/** The key that signs ID tokens. */
export class SigningKey extends Model {
  static override tableName = 'signing_keys'
  static override idColumn = 'kid'
  static override jsonAttributes = ['publicJwk']

  declare kid: string
  declare sealedPrivateKey: Buffer
  declare publicJwk: object
  declare createdAt: Date
}
