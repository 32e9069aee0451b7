import type { Knex } from 'knex'
import type { QueryBuilder } from 'objection'
import { Aspect } from './aspect.js'
import { Contact } from './contact.js'
import { Model } from './model.js'
import { Person } from './person.js'

export type Role = 'admin' | 'moderator'

/** A person who lives on this pod. */
export class User extends Model {
  static override tableName = 'users'
  static override jsonAttributes = ['settings']

  declare id: number
  declare personId: number
  declare username: string
  declare email: string | null
  declare role: Role | null
  declare language: string
  declare settings: Record<string, unknown>
  /** Whoever begins to share is put here and followed back; null: nobody is. */
  declare followBackAspectId: number | null
  declare lastSignInAt: Date | null
  declare lockedAt: Date | null
  declare closedAt: Date | null
  declare createdAt: Date

  declare person?: Person
  declare secrets?: UserSecrets
  declare aspects?: Aspect[]
  declare contacts?: Contact[]

  static override relationMappings = () => ({
    person: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'users.personId', to: 'people.id' },
    },
    secrets: {
      relation: Model.HasOneRelation,
      modelClass: UserSecrets,
      join: { from: 'users.id', to: 'user_secrets.userId' },
    },
    aspects: {
      relation: Model.HasManyRelation,
      modelClass: Aspect,
      join: { from: 'users.id', to: 'aspects.userId' },
    },
    contacts: {
      relation: Model.HasManyRelation,
      modelClass: Contact,
      join: { from: 'users.id', to: 'contacts.userId' },
    },
  })

  /** With the person; locked and closed accounts included. */
  static byUsername(db: Knex, username: string): QueryBuilder<User, User | undefined> {
    return this.query(db).findOne({ username: username.toLowerCase() }).withGraphFetched('person')
  }

  /**
   * Whoever changes what belongs together holds the user first, so that two of them take turns; and with the user those of
   * these people who live here, where both sides change.
   */
  static async lock(transaction: Knex.Transaction, userId: number, personIds: readonly number[] = []): Promise<void> {
    await this.query(transaction)
      .where({ id: userId })
      .orWhereIn('personId', [...personIds])
      .orderBy('id') // so that they never wait for each other
      .select('id')
      .forNoKeyUpdate()
  }
}

/** Apart from the user, so that nothing that reads a user can show these. */
export class UserSecrets extends Model {
  static override tableName = 'user_secrets'
  static override idColumn = 'userId'

  declare userId: number
  /** Null once the account is closed. */
  declare passwordHash: string | null
  declare sealedPrivateKey: Buffer
  /** False: it was sealed by an earlier version, which did not bind it to the user. */
  declare bound: boolean

  /** Undefined: the person does not live here. */
  static findByPerson(db: Knex, personId: number): QueryBuilder<UserSecrets, UserSecrets | undefined> {
    return this.query(db).findOne({ userId: User.query(db).select('id').where({ personId }) })
  }
}
