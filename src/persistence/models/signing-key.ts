import { Model } from './model.js'

/** What the pod signs ID tokens with. */
export class SigningKey extends Model {
  static override tableName = 'signing_keys'
  static override idColumn = 'kid'
  static override jsonAttributes = ['publicJwk']

  declare kid: string
  declare sealedPrivateKey: Buffer
  declare publicJwk: object
  declare createdAt: Date
}
