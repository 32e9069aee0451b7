import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { Person } from '../models/person.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'

export type ListedPerson = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

/** All that a user shares with, and all that share with the user. */
export async function listContactsOfUser(db: Knex, userId: number, page: OffsetPage): Promise<Page<ListedPerson>> {
  const contactsSql = 'contacts where contacts.user_id = $1 and contacts.inactive_sharing is null'
  return listPeople(db, { name: 'contacts', contactsSql, ownerId: userId }, page)
}

export async function listContactsOfAspect(db: Knex, aspectId: number, page: OffsetPage): Promise<Page<ListedPerson>> {
  const contactsSql = `
    aspect_memberships join contacts on contacts.id = aspect_memberships.contact_id
    where aspect_memberships.aspect_id = $1 and contacts.inactive_sharing is null`
  return listPeople(db, { name: 'contacts in aspect', contactsSql, ownerId: aspectId }, page)
}

interface ContactQuery {
  readonly name: string
  readonly contactsSql: string
  /** The id of the user or the aspect. */
  readonly ownerId: number
}

/** People without a name come last. */
async function listPeople(
  db: Knex,
  { name, contactsSql, ownerId }: ContactQuery,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const rows = await queryPrepared<ListedPerson>(
    db,
    name,
    `select people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
     from (select contacts.person_id from ${contactsSql}) as found
     join people on people.id = found.person_id
     join profiles on profiles.person_id = found.person_id
     order by lower(nullif(profiles.first_name, '')), lower(nullif(profiles.last_name, '')), people.address
     offset $2 limit $3`,
    [ownerId, page.offset, page.limit + 1],
  )
  return toPage(rows, page)
}
