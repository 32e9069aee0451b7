import { Model } from 'objection'
import { Contact } from './contact.js'

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
}
