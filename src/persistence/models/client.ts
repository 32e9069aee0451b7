import type { Knex } from 'knex'
import type { ModelObject } from 'objection'
import { Model } from './model.js'

/** Which shapes the answers of the client API have where the two exclude each other. */
export type ClientApiDialect = 'standard' | 'diaspora'

/** An application that may ask people for access to their account. */
export class Client extends Model {
  static override tableName = 'clients'
  static override jsonAttributes = ['metadata']

  declare id: number
  declare clientId: string
  declare secretHash: Buffer | null
  declare name: string | null
  declare redirectUris: string[]
  /** Null: that of the setting. */
  declare apiDialect: ClientApiDialect | null
  /** All else it said about itself when it registered. */
  declare metadata: Record<string, unknown>
  declare createdAt: Date
  declare updatedAt: Date

  /** With how many people have authorized each. */
  static async listNewest(db: Knex, limit: number): Promise<readonly (ClientRow & { readonly users: number })[]> {
    return db('clients')
      .select('clients.*', db.raw('(select count(*) from authorizations where client_id = clients.id) as users'))
      .orderBy([
        { column: 'createdAt', order: 'desc' },
        { column: 'id', order: 'desc' },
      ])
      .limit(limit)
  }
}

export type ClientRow = ModelObject<Client>
