import type { Knex } from 'knex'
import { Contact } from './contact.js'
import { Model } from './model.js'

/** A named group of a user's contacts. */
export class Aspect extends Model {
  static override tableName = 'aspects'

  declare id: number
  declare userId: number
  declare name: string
  declare position: number
  declare createdAt: Date

  declare contacts?: Contact[]

  static override relationMappings = () => ({
    contacts: {
      relation: Model.ManyToManyRelation,
      modelClass: Contact,
      join: {
        from: 'aspects.id',
        through: { from: 'aspect_memberships.aspectId', to: 'aspect_memberships.contactId' },
        to: 'contacts.id',
      },
    },
  })

  /** Inserts an aspect in the last position. Its owner must be locked. */
  static async insertLast(transaction: Knex.Transaction, userId: number, name: string): Promise<Aspect> {
    const last = await this.query(transaction).where({ userId }).orderBy('position', 'desc').first().select('position')
    const position = (last?.position ?? 0) + 1
    return this.query(transaction).insert({ userId, name, position }).returning('*')
  }

  /** Moves an aspect to a position. Its owner must be locked. */
  static async moveTo(
    transaction: Knex.Transaction,
    { userId, id, position }: Pick<Aspect, 'userId' | 'id' | 'position'>,
  ): Promise<void> {
    await transaction.raw(MOVED_ASPECT_SQL, { userId, id, position })
  }
}

/** Numbers the other aspects from one and leaves the new position free. Only rows with a new position are written. */
const MOVED_ASPECT_SQL = `
  with others as (
    select id, row_number() over (order by position, id) as rank from aspects where user_id = :userId and id <> :id
  ), renumbered as (
    select id, case when :position between 1 and rank then rank + 1 else rank end as rank from others
    union all select :id, :position
  )
  update aspects set position = renumbered.rank from renumbered
  where aspects.id = renumbered.id and aspects.position <> renumbered.rank`
