import type { ListedPerson } from '../../persistence/contacts/list-contacts.js'
import { findNewestAddresses } from '../../persistence/people/moved-people.js'
import { type ContactFilter, searchPeopleByName, searchPeopleByTag } from '../../persistence/people/people-search.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import { parseAddress } from '../../protocol/address.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { requireAspects } from '../contacts/aspects.js'
import { normaliseTagName } from '../posts/tags.js'
import { SEARCH_LIMITS } from './limits.js'

/** A search with filters that must all match. Routes allow filters only with the scope `contacts:read`. */
export type PeopleSearch = {
  readonly filters: readonly ContactFilter[]
} & ({ readonly nameOrAddress: string } | { readonly tag: string })

const EMPTY_PAGE: Page<ListedPerson> = { items: [], hasMore: false }

/** Searches people who are searchable. With the scope `contacts:read`, the viewer's contacts are always found. */
export async function searchPeople(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  search: PeopleSearch,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  const { filters } = search
  const { userId } = viewer
  await requireAspects(
    services,
    viewer,
    filters.flatMap((filter) => (typeof filter === 'object' ? filter.aspectIds : [])),
  )
  if ('tag' in search) {
    const tag = normaliseTagName(search.tag)
    return tag === '' ? EMPTY_PAGE : searchPeopleByTag(services.db, { userId, filters, tag }, page)
  }
  const text = search.nameOrAddress.trim()
  if ([...text].length < SEARCH_LIMITS.minCharacters) return EMPTY_PAGE
  const address = parseAddress(text)
  const shouldFindContacts = viewer.scopes.has('contacts:read')
  const find = (words: readonly string[], beginning: string) =>
    searchPeopleByName(services.db, { userId, filters, words, beginning, shouldFindContacts }, page)
  // Who searches for an old address finds the person where they are now.
  const [found, newest] = await Promise.all([
    find(text.split(/\s+/), address ?? text),
    address === undefined ? undefined : findNewestAddresses(services.db, [address]).then((moved) => moved.get(address)),
  ])
  return newest === undefined ? found : find([newest], newest)
}
