import type { Knex } from 'knex'
import { Model, type QueryBuilder } from 'objection'
import { Pod } from './pod.js'

/** Anyone on the network, here or elsewhere. */
export class Person extends Model {
  static override tableName = 'people'

  declare id: number
  declare guid: string
  declare address: string
  /** Null: the person lives on this pod. */
  declare podId: number | null
  /** Pinned at first sight, as PEM. */
  declare publicKey: string
  /** First and last name as in the profile; empty if it has none. */
  declare name: string
  /** The medium picture of the profile, if it has one. */
  declare avatarUrl: string | null
  declare refreshedAt: Date | null
  declare streamFetchedAt: Date | null
  declare closedAt: Date | null
  declare createdAt: Date

  declare profile?: Profile
  declare pod?: Pod | null

  static override relationMappings = () => ({
    profile: {
      relation: Model.HasOneRelation,
      modelClass: Profile,
      join: { from: 'people.id', to: 'profiles.personId' },
    },
    pod: {
      relation: Model.BelongsToOneRelation,
      modelClass: Pod,
      join: { from: 'people.podId', to: 'pods.id' },
    },
  })

  /** One statement for any number; who is not known is left out. */
  static byAddresses(db: Knex, addresses: readonly string[]): QueryBuilder<Person> {
    return this.query(db).whereRaw('people.address = any(?)', [[...addresses]])
  }

  /** A person never exists without a profile. */
  static async add(transaction: Knex.Transaction, person: NewPerson, profile: ProfileFields = {}): Promise<Person> {
    const added = await this.query(transaction)
      .insert({ ...person, ...shownOf(profile) })
      .returning('*')
    added.profile = await Profile.query(transaction)
      .insert({ ...profile, personId: added.id })
      .returning('*')
    return added
  }
}

type NewPerson = Pick<Person, 'guid' | 'address' | 'publicKey'> & { readonly podId?: number }

type ProfileFields = Partial<Omit<Profile, keyof Model | 'personId'>>

/** What of a profile is copied to its person, so that a list of people reads one table. */
function shownOf(profile: ProfileFields): Pick<Person, 'name' | 'avatarUrl'> {
  const { firstName, lastName, imageUrlMedium, imageUrl } = profile
  return {
    name: `${firstName ?? ''} ${lastName ?? ''}`.trim(),
    avatarUrl: imageUrlMedium ?? imageUrl ?? null,
  }
}

export class Profile extends Model {
  static override tableName = 'profiles'
  static override idColumn = 'personId'

  declare personId: number
  declare firstName: string | null
  declare lastName: string | null
  declare imageUrl: string | null
  declare imageUrlMedium: string | null
  declare imageUrlSmall: string | null
  declare bio: string
  declare location: string
  declare gender: string | null
  /** YYYY-MM-DD; year 1004 or lower: unknown. */
  declare birthday: string | null
  declare searchable: boolean
  declare publicDetails: boolean
  declare nsfw: boolean
  /** Without #, in the order of the owner. */
  declare tags: string[]
  /** The younger of these two decides whether a received profile is news. */
  declare editedAt: Date | null
  declare acceptedAt: Date | null
  declare updatedAt: Date
}
