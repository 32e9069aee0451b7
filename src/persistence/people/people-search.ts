import type { Knex } from 'knex'
import type { ListedPerson } from '../contacts/list-contacts.js'
import { queryUnprepared } from '../database/database.js'
import { escapeLike } from '../sql/escape-like.js'
import { hasRowSql } from '../sql/has-row.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import { prefixRangeEnd } from '../sql/prefix-range.js'
import { followRowSql } from './restricted-people.js'

/** The relationship of the user to the people found: any contact, one direction of sharing, or membership in one of these aspects. */
export type ContactFilter = 'any' | 'sharing' | 'receiving' | { readonly aspectIds: readonly number[] }

interface PeopleSearch {
  readonly userId: number
  /** Each person found meets all of these. */
  readonly filters: readonly ContactFilter[]
}

/** Searches people with a tag in their profile. Index `profiles_tags`. Only searchable profiles are found. */
export async function searchPeopleByTag(
  db: Knex,
  { tag, ...search }: PeopleSearch & { readonly tag: string },
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const condition = (addParameter: AddParameter) =>
    `profiles.searchable and profiles.tags @> array[${addParameter(tag)}]
     and (people.restriction is null or ${isFollowedBySql(addParameter(search.userId))})`
  return searchPeople(db, condition, search, page)
}

interface NameOrAddress {
  /** The name contains these words, in this order and in any letter case. */
  readonly words: readonly string[]
  /** Alternatively, the address begins with this text. */
  readonly beginning: string
  /** Whether contacts of the user are found although their profiles are not searchable. */
  readonly shouldFindContacts: boolean
}

/** Searches people by name or address. Indexes `people_part_of_name` (trigrams), `people_shown_name` and the unique key of address. */
export async function searchPeopleByName(
  db: Knex,
  { words, beginning, shouldFindContacts, ...search }: PeopleSearch & NameOrAddress,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const pattern = `%${words.map(escapeLike).join('%')}%`
  const condition = (addParameter: AddParameter) => `
    (
      people.shown_name like lower(${addParameter(pattern)}) and people.name <> ''
      or people.address >= lower(${addParameter(beginning)}) and people.address < lower(${addParameter(prefixRangeEnd(beginning))})
    )
    and (
      people.restriction is null
      or people.address = lower(${addParameter(beginning)})
      or ${isFollowedBySql(addParameter(search.userId))}
    )
    and (profiles.searchable ${shouldFindContacts ? `or ${isContactOfSql(addParameter(search.userId))}` : ''})`
  return searchPeople(db, condition, search, page)
}

/** Adds a parameter to the statement and returns its placeholder. */
type AddParameter = (value: unknown) => string

/**
 * Finds open people by a condition, in the order of their shown names. Planned for the values of each search: a common name part is read
 * in the order of `people_shown_name` until the page is full, a rare one by its trigrams. The inner select reads the index alone.
 */
async function searchPeople(
  db: Knex,
  searchCondition: (addParameter: AddParameter) => string,
  { userId, filters }: PeopleSearch,
  { offset, limit }: OffsetPage,
): Promise<Page<ListedPerson>> {
  const values: unknown[] = []
  const addParameter: AddParameter = (value) => `$${values.push(value)}`
  const conditions = [
    'people.closed_at is null',
    `people.restriction is distinct from 'block'`,
    searchCondition(addParameter),
  ]
  if (filters.length > 0) {
    const user = addParameter(userId)
    conditions.push(
      ...filters.map(
        (filter) => `people.id in (select person_id from ${matchingContactsSql(filter, user, addParameter)})`,
      ),
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
       offset ${addParameter(offset)} limit ${addParameter(limit + 1)}
     ) as page
     join people on people.id = page.id
     order by page.shown_name, page.address`,
    values,
  )
  return toPage(people, { limit })
}

function matchingContactsSql(filter: ContactFilter, user: string, addParameter: AddParameter): string {
  if (filter === 'any') return `contacts where user_id = ${user}`
  if (typeof filter === 'string') return `contacts where user_id = ${user} and ${filter}`
  const members = 'contacts join aspect_memberships on contact_id = contacts.id'
  return `${members} where user_id = ${user} and aspect_id = any(${addParameter(filter.aspectIds)})`
}

function isFollowedBySql(user: string): string {
  return hasRowSql(followRowSql(user, 'people.id'))
}

function isContactOfSql(user: string): string {
  return hasRowSql(`contacts where contacts.user_id = ${user} and contacts.person_id = people.id`)
}
