import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { Aspect } from '../models/aspect.js'
import type { Contact } from '../models/contact.js'
import type { Person, Profile } from '../models/person.js'
import type { ViewerIds } from '../posts/list-posts.js'

/** A person with their profile and their relationship to a user. */
export interface PersonWithRelationship {
  readonly id: number
  readonly person: Pick<Person, 'guid' | 'address' | 'name'>
  readonly profile: VisibleProfile
  readonly isClosed: boolean
  /** The user blocks the person. */
  readonly isBlocked: boolean
  readonly relationship: Pick<Contact, 'sharing' | 'receiving'>
  /** The user's aspects that contain the person, in the user's order. */
  readonly aspects: readonly Pick<Aspect, 'id' | 'name'>[]
}

type VisibleProfile = Pick<
  Profile,
  | 'imageUrl'
  | 'imageUrlMedium'
  | 'imageUrlSmall'
  | 'bio'
  | 'location'
  | 'gender'
  | 'birthday'
  | 'searchable'
  | 'publicDetails'
  | 'nsfw'
  | 'tags'
>

/** Undefined: there is no person with this guid, or a moderator blocks them. Closed people are found. */
export async function findPersonWithRelationship(
  db: Knex,
  { userId }: ViewerIds,
  guid: string,
): Promise<PersonWithRelationship | undefined> {
  const [person] = await queryPrepared<PersonWithRelationship>(db, 'person-with-relationship', PERSON_SQL, [
    userId,
    guid,
  ])
  return person
}

/** Finds the author of a list, closed ones included. Undefined: there is no person with this guid. */
export async function findAuthor(
  db: Knex,
  guid: string,
): Promise<{ readonly id: number; readonly isClosed: boolean } | undefined> {
  const [author] = await queryPrepared<{ id: number; isClosed: boolean }>(
    db,
    'author',
    `select id, closed_at is not null as "isClosed" from people where guid = $1 and restriction is distinct from 'block'`,
    [guid],
  )
  return author
}

/** Returns one person by the unique key of guid. Contact, block and aspects are looked up by their keys. */
const PERSON_SQL = `
  select
    people.id,
    people.closed_at is not null as "isClosed",
    json_build_object('guid', people.guid, 'address', people.address, 'name', people.name) as person,
    json_build_object(
      'imageUrl', profiles.image_url, 'imageUrlMedium', profiles.image_url_medium, 'imageUrlSmall', profiles.image_url_small,
      'bio', profiles.bio, 'location', profiles.location, 'gender', profiles.gender, 'birthday', profiles.birthday,
      'searchable', profiles.searchable, 'publicDetails', profiles.public_details, 'nsfw', profiles.nsfw,
      'tags', profiles.tags
    ) as profile,
    exists (select from blocks where blocks.user_id = $1 and blocks.person_id = people.id) as "isBlocked",
    json_build_object(
      'sharing', coalesce(contacts.sharing, false), 'receiving', coalesce(contacts.receiving, false)
    ) as relationship,
    (
      select coalesce(
        json_agg(json_build_object('id', aspects.id, 'name', aspects.name) order by aspects.position, aspects.id), '[]'
      )
      from aspect_memberships join aspects on aspects.id = aspect_memberships.aspect_id
      where aspect_memberships.contact_id = contacts.id
    ) as aspects
  from people
  join profiles on profiles.person_id = people.id
  left join contacts on contacts.user_id = $1 and contacts.person_id = people.id
  where people.guid = $2 and people.restriction is distinct from 'block'`
