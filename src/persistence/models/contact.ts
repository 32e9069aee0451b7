import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { Aspect } from './aspect.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** The relation of a user and a person. A row has at least one of the two flags. */
export class Contact extends Model {
  static override tableName = 'contacts'

  declare id: number
  declare userId: number
  declare personId: number
  /** The person shares with the user. */
  declare sharing: boolean
  /** The user shares with the person. */
  declare receiving: boolean
  declare createdAt: Date

  declare person?: Person
  declare aspects?: Aspect[]

  static override relationMappings = () => ({
    person: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'contacts.personId', to: 'people.id' },
    },
    aspects: {
      relation: Model.ManyToManyRelation,
      modelClass: Aspect,
      join: {
        from: 'contacts.id',
        through: { from: 'aspect_memberships.contactId', to: 'aspect_memberships.aspectId' },
        to: 'aspects.id',
      },
    },
  })
}

/** A block of a person by a user. */
export class Block extends Model {
  static override tableName = 'blocks'
  static override idColumn = ['userId', 'personId']

  declare userId: number
  declare personId: number
  declare createdAt: Date

  /** True if a local person blocks another person. */
  static async exists(
    db: Knex,
    { by, personId }: { readonly by: number; readonly personId: number },
  ): Promise<boolean> {
    return (await queryPrepared(db, 'block', BLOCK_SQL, [by, personId])).length > 0
  }
}

const BLOCK_SQL = `
  select from blocks join users on users.id = blocks.user_id
  where users.person_id = $1 and blocks.person_id = $2`
