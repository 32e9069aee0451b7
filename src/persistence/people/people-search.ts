import type { Knex } from 'knex'
import type { ListedPerson } from '../contacts/list-contacts.js'
import { queryUnprepared } from '../database/database.js'
import { hasRow } from '../sql/has-row.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import { prefixRangeEnd } from '../sql/prefix-range.js'

/** What is between the user and the person: anything at all, one of its halves, or being in one of these aspects. */
export type ContactFilter = 'any' | 'sharing' | 'receiving' | { readonly aspectIds: readonly number[] }

interface Seeker {
  readonly userId: number
  /** All of these hold for everybody who is found. */
  readonly filters: readonly ContactFilter[]
}

/** People who let themselves be found and show this tag in their profile. */
export async function searchPeopleByTag(
  db: Knex,
  { tag, ...seeker }: Seeker & { readonly tag: string },
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const sought = (place: Place) => `profiles.searchable and profiles.tags @> array[${place(tag)}]`
  return soughtPeople(db, sought, seeker, page)
}

interface NameOrAddress {
  /** The name has them, in this order and in any case. */
  readonly words: readonly string[]
  /** Or the address begins with this. */
  readonly beginning: string
  /** Contacts of the user are found even if they do not let themselves be found. */
  readonly contactsToo: boolean
}

/** People who let themselves be found. */
export async function searchPeopleByName(
  db: Knex,
  { words, beginning, contactsToo, ...seeker }: Seeker & NameOrAddress,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const pattern = `%${words.map((word) => word.replace(/[\\%_]/g, '\\$&')).join('%')}%`
  const sought = (place: Place) => `
    (
      people.shown_name like lower(${place(pattern)}) and people.name <> ''
      or people.address >= lower(${place(beginning)}) and people.address < lower(${place(prefixRangeEnd(beginning))})
    )
    and (profiles.searchable ${contactsToo ? `or ${isContactOf(place(seeker.userId))}` : ''})`
  return soughtPeople(db, sought, seeker, page)
}

/** Makes something a value of the statement, and stands for it there. */
type Place = (value: unknown) => string

/** By the names they are shown by; those who have left are found no more. */
async function soughtPeople(
  db: Knex,
  sought: (place: Place) => string,
  { userId, filters }: Seeker,
  { offset, limit }: OffsetPage,
): Promise<Page<ListedPerson>> {
  const values: unknown[] = []
  const place: Place = (value) => `$${values.push(value)}`
  const conditions = ['people.closed_at is null', sought(place)]
  if (filters.length > 0) {
    const user = place(userId)
    conditions.push(
      ...filters.map((filter) => `people.id in (select person_id from ${contactsWho(filter, user, place)})`),
    )
  }
  const people = await queryUnprepared<ListedPerson>(
    db,
    `select people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
     from (
       select people.id, people.shown_name, people.address
       from people join profiles on profiles.person_id = people.id
       where ${conditions.join(' and ')}
       order by people.shown_name, people.address
       offset ${place(offset)} limit ${place(limit + 1)}
     ) as found
     join people on people.id = found.id
     order by found.shown_name, found.address`,
    values,
  )
  return toPage(people, { limit })
}

function contactsWho(filter: ContactFilter, user: string, place: Place): string {
  if (filter === 'any') return `contacts where user_id = ${user}`
  if (typeof filter === 'string') return `contacts where user_id = ${user} and ${filter}`
  const filed = 'contacts join aspect_memberships on contact_id = contacts.id'
  return `${filed} where user_id = ${user} and aspect_id = any(${place(filter.aspectIds)})`
}

function isContactOf(user: string): string {
  return hasRow(`contacts where contacts.user_id = ${user} and contacts.person_id = people.id`)
}
