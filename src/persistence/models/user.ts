import type { Knex } from 'knex'
import type { QueryBuilder } from 'objection'
import { Aspect } from './aspect.js'
import { Contact } from './contact.js'
import { Model } from './model.js'
import { Person } from './person.js'

export type Role = 'admin' | 'moderator'

/** `suppressed`: the mailbox does not exist, so no notices are sent. */
export type MailState = 'ok' | 'bouncing' | 'suppressed'

/** Who has begun to close an account; `inactivity`: it was not used for the days of the setting. */
export type ClosingBy = 'owner' | 'moderator' | 'inactivity'

/** The account of a local person. */
export class User extends Model {
  static override tableName = 'users'
  static override jsonAttributes = ['settings']

  declare id: number
  declare personId: number
  declare username: string
  declare email: string | null
  declare emailConfirmedAt: Date | null
  /** The address that replaces the e-mail once its mailbox is confirmed. */
  declare unconfirmedEmail: string | null
  /** The network address from which the account was opened, shortened. */
  declare signUpNetwork: string | null
  /** The address itself; after 30 days its network. */
  declare signUpIp: string | null
  declare mailEnabled: boolean
  declare digestHour: number
  declare mailState: MailState
  declare role: Role | null
  declare language: string
  declare timeZone: string
  /** Advice to clients, which no use case applies. */
  declare defaultPostPublic: boolean
  declare settings: Record<string, unknown>
  /** Aspect for people who start sharing and are followed back; null: no following back. */
  declare followBackAspectId: number | null
  /** Reports of this user do not raise the rank of a case. */
  declare reportsMuted: boolean
  /** The user id of passkeys; null before the first one. */
  declare webauthnId: Buffer | null
  declare lastSignInAt: Date | null
  /** The last use by a browser or an application, at most a day late; null: none is recorded. */
  declare activeAt: Date | null
  /** When the owner was warned because the account was unused. */
  declare inactiveWarnedAt: Date | null
  declare lockedAt: Date | null
  declare closedAt: Date | null
  /** The end of the grace period of an account that is being closed. */
  declare closeAt: Date | null
  declare closingBy: ClosingBy | null
  declare closingRetracts: boolean
  /** The invitation that the account was made with. */
  declare invitationId: number | null
  /** Null: a command has made the account. */
  declare signedUpAt: Date | null
  /** The terms of the operator that were accepted with the sign-up; null: there were none. */
  declare termsVersion: string | null
  declare termsAcceptedAt: Date | null
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

  /** Finds a user with their person. Locked and closed accounts are included. */
  static byUsername(db: Knex, username: string): QueryBuilder<User, User | undefined> {
    return this.query(db).findOne({ username: username.toLowerCase() }).withGraphFetched('person')
  }

  /**
   * Locks a user, so that changes of their contacts and aspects run one after the other. Local users among `personIds` are locked
   * too, for changes of both sides.
   */
  static async lock(transaction: Knex.Transaction, userId: number, personIds: readonly number[] = []): Promise<void> {
    await this.query(transaction)
      .where({ id: userId })
      .orWhereIn('personId', [...personIds])
      .orderBy('id') // one order, so that two transactions cannot deadlock
      .select('id')
      .forNoKeyUpdate()
  }
}

/** Secrets of a user, in a table of their own so that no query of users can expose them. */
export class UserSecrets extends Model {
  static override tableName = 'user_secrets'
  static override idColumn = 'userId'

  declare userId: number
  /** Null once the account is closed. */
  declare passwordHash: string | null
  declare sealedPrivateKey: Buffer
  /** False: it was sealed by an earlier version, which did not bind it to the user. */
  declare bound: boolean
  declare sealedTotpSecret: Buffer | null
  /** Null: the authenticator app is not set up, or its first code is missing. */
  declare totpConfirmedAt: Date | null
  /** The step of the last accepted code. */
  declare totpLastStep: number | null

  /** Undefined: the person is not local. */
  static findByPerson(db: Knex, personId: number): QueryBuilder<UserSecrets, UserSecrets | undefined> {
    return this.query(db).findOne({ userId: User.query(db).select('id').where({ personId }) })
  }
}
