import type { Knex } from 'knex'
import type { ModelObject } from 'objection'
import { Model } from './model.js'

/** Response format of the client API where the documented API and diaspora* exclude each other. */
export type ClientApiDialect = 'standard' | 'diaspora'

/** A registered application that can request access to accounts. */
export class Client extends Model {
  static override tableName = 'clients'
  static override jsonAttributes = ['metadata']

  declare id: number
  declare clientId: string
  declare secretHash: Buffer | null
  declare name: string | null
  declare redirectUris: string[]
  /** Null: the dialect of the setting. */
  declare apiDialect: ClientApiDialect | null
  /** Other metadata of the registration. */
  declare metadata: Record<string, unknown>
  declare createdAt: Date
  declare updatedAt: Date

  /** Lists clients, newest first, with the number of users who have authorized each. */
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
