import type { Knex } from 'knex'
import type { QueryBuilder } from 'objection'
import { queryPrepared } from '../database/database.js'
import { Model } from './model.js'
import { RemotePod } from './remote-pod.js'

/** A local or remote person. */
export class Person extends Model {
  static override tableName = 'people'

  declare id: number
  declare guid: string
  declare address: string
  /** Null: a local person. */
  declare podId: number | null
  /** The guid that the person's pod uses, set only if another person has that guid here. */
  declare guidAtPod: string | null
  /** Time of the first valid signature of a remote person. */
  declare provenAt: Date | null
  /** The first key that was seen, as PEM. It is never replaced. */
  declare publicKey: string
  /** First and last name as in the profile; empty if it has none. */
  declare name: string
  /** The medium picture of the profile, if it has one. */
  declare avatarUrl: string | null
  declare refreshedAt: Date | null
  declare streamFetchedAt: Date | null
  declare closedAt: Date | null
  /** Set by moderators: the strictest of `person_restrictions`. */
  declare restriction: 'silence' | 'block' | null
  declare createdAt: Date

  declare profile?: Profile
  declare pod?: RemotePod | null

  static override relationMappings = () => ({
    profile: {
      relation: Model.HasOneRelation,
      modelClass: Profile,
      join: { from: 'people.id', to: 'profiles.personId' },
    },
    pod: {
      relation: Model.BelongsToOneRelation,
      modelClass: RemotePod,
      join: { from: 'people.podId', to: 'pods.id' },
    },
  })

  /** Finds people by addresses. Unknown addresses are left out. */
  static byAddresses(db: Knex, addresses: readonly string[]): QueryBuilder<Person> {
    return this.query(db).whereRaw('people.address = any(?)', [[...addresses]])
  }

  /** Finds a local person with an open account, or the account of the pod. */
  static async findLocalByAddress(db: Knex, address: string): Promise<Pick<Person, 'guid' | 'address'> | undefined> {
    const [person] = await queryPrepared<Pick<Person, 'guid' | 'address'>>(db, 'local-person', LOCAL_BY_ADDRESS_SQL, [
      address,
    ])
    return person
  }

  /** True for local and remote people, closed accounts included. */
  static async isKnown(db: Knex, address: string): Promise<boolean> {
    const rows = await queryPrepared(db, 'known-person', 'select from people where address = $1', [address])
    return rows.length > 0
  }

  /** Finds the public data of a local person with an open account, or of the account of the pod. */
  static async findLocalCard(db: Knex, guid: string): Promise<LocalCard | undefined> {
    const [card] = await queryPrepared<LocalCard>(db, 'local-card', LOCAL_CARD_SQL, [guid])
    return card
  }

  /** Finds a person with their pod; local people have none. */
  static byAddress(db: Knex, address: string): QueryBuilder<Person, Person | undefined> {
    return this.query(db).findOne({ address }).withGraphFetched('pod')
  }

  /** Finds known people with everything that decides whether their signature is accepted. */
  static async findSigners(db: Knex, addresses: readonly string[]): Promise<readonly SignerRow[]> {
    return queryPrepared<SignerRow>(db, 'signers', SIGNERS_SQL, [[...addresses]])
  }

  /** Inserts a person together with their profile, so that none exists without. */
  static async insertWithProfile(
    transaction: Knex.Transaction,
    person: NewPerson,
    profile: ProfileFields = {},
  ): Promise<Person> {
    const newPerson = await this.query(transaction)
      .insert({ ...person, ...listedColumns(profile) })
      .returning('*')
    newPerson.profile = await Profile.query(transaction)
      .insert({ ...profile, personId: newPerson.id })
      .returning('*')
    return newPerson
  }

  /** Locks a person. Changes of person or profile take this lock first, so that two of them cannot deadlock. */
  static async lock(transaction: Knex.Transaction, personId: number): Promise<void> {
    await this.query(transaction).findById(personId).select('id').forNoKeyUpdate()
  }

  /** Changes the profile of a local person, who must be locked. */
  static async updateProfile(transaction: Knex.Transaction, personId: number, profile: ProfileFields): Promise<void> {
    const changedProfile = await Profile.query(transaction).patchAndFetchById(personId, profile)
    await this.query(transaction).findById(personId).patch(listedColumns(changedProfile))
  }

  /** Replaces the profile of a remote person, unless a newer one than `since` was received. */
  static async refreshProfile(
    transaction: Knex.Transaction,
    personId: number,
    profile: ProfileFields,
    since: Date,
  ): Promise<void> {
    await this.lock(transaction, personId)
    const [changedProfile] = await Profile.query(transaction)
      .patch({ ...profile, updatedAt: since })
      .where({ personId })
      .where((older) => older.whereNull('acceptedAt').orWhere('acceptedAt', '<', since))
      .returning('*')
    const newColumns = changedProfile === undefined ? {} : listedColumns(changedProfile)
    await this.query(transaction)
      .findById(personId)
      .patch({ ...newColumns, refreshedAt: since })
  }
}

/** A person whose key may have signed a message, with the fields that decide whether the message counts. */
export interface SignerRow {
  readonly address: string
  readonly publicKey: string
  readonly isLocal: boolean
  readonly isClosed: boolean
  /** A local person, or a remote one with an earlier valid signature. */
  readonly hasSigned: boolean
  /** A moderator blocks the person. */
  readonly isPersonBlocked: boolean
  /** The operator blocks their pod, or the pod at the host of their address. */
  readonly isPodBlocked: boolean
  /** The pod of the person does not answer. */
  readonly isPodOffline: boolean
}

const SIGNERS_SQL = `
  select
    people.address,
    people.public_key as "publicKey",
    people.pod_id is null as "isLocal",
    people.closed_at is not null as "isClosed",
    people.restriction is not distinct from 'block' as "isPersonBlocked",
    people.pod_id is null or people.proven_at is not null as "hasSigned",
    pods.blocked_at is not null or (
      -- The pod row decides already if the address is at its host.
      pods.host <> home.host and pod_rule_state(
        home.host, cast(case when home.port in ('', '80') then '443' else home.port end as integer)
      ) = 'blocked'
    ) is true as "isPodBlocked",
    pods.offline_since is not null as "isPodOffline"
  from people
  left join pods on pods.id = people.pod_id
  cross join lateral (
    select regexp_replace(address_host, ':[0-9]+$', '') as host, coalesce(substring(address_host from ':([0-9]{1,5})$'), '') as port
    from split_part(people.address, '@', 2) as address_host
  ) as home
  where people.address = any($1)`

/** Public data of a local person. */
export type LocalCard = Pick<Person, 'guid' | 'address' | 'publicKey' | 'name'> &
  Pick<Profile, 'firstName' | 'lastName' | 'searchable' | 'imageUrl' | 'imageUrlMedium' | 'imageUrlSmall'>

const LOCAL_BY_ADDRESS_SQL = `
  select guid, address from people where address = $1 and pod_id is null and closed_at is null
  union all
  select guid, address from pod_account where address = $1`

const LOCAL_CARD_SQL = `
  select
    people.guid,
    people.address,
    people.public_key as "publicKey",
    people.name,
    profiles.first_name as "firstName",
    profiles.last_name as "lastName",
    profiles.searchable,
    profiles.image_url as "imageUrl",
    profiles.image_url_medium as "imageUrlMedium",
    profiles.image_url_small as "imageUrlSmall"
  from people
  join profiles on profiles.person_id = people.id
  where people.guid = $1 and people.pod_id is null and people.closed_at is null
  union all
  select guid, address, public_key, '', null, null, false, null, null, null from pod_account where guid = $1`

type NewPerson = Pick<Person, 'guid' | 'address' | 'publicKey'> & {
  readonly podId?: number
  readonly guidAtPod?: string | null
  readonly refreshedAt?: Date
}

export type ProfileFields = Partial<Omit<Profile, keyof Model | 'personId'>>

/** Columns that are copied from the profile to the person, so that lists of people read one table. */
function listedColumns(profile: ProfileFields): Pick<Person, 'name' | 'avatarUrl'> {
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
  /** Tags without #, in the order of the owner. */
  declare tags: string[]
  /** The later of these two times decides whether a received profile is newer. */
  declare editedAt: Date | null
  declare acceptedAt: Date | null
  declare updatedAt: Date
}
