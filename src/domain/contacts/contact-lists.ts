import {
  type ListedPerson,
  listContactsOfAspect,
  listContactsOfUser,
} from '../../persistence/contacts/list-contacts.js'
import { findAuthor } from '../../persistence/people/find-person-with-relationship.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** Refuses lists of other people's contacts: contacts are visible to their owner only. */
export async function requireOwnContacts(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  personGuid: string,
): Promise<void> {
  const person = await findAuthor(services.db, personGuid)
  if (person?.id === viewer.personId) return
  throw new Refusal('person_not_found', 'You may list only your own contacts.')
}

/** Lists people with whom the viewer shares or who share with the viewer. */
export async function listContacts(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfUser(services.db, viewer.userId, page)
}

/** Lists the people of an aspect. The caller has checked that the aspect belongs to the viewer. */
export async function listContactsInAspect(
  services: Pick<Services, 'db'>,
  aspectId: number,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfAspect(services.db, aspectId, page)
}
