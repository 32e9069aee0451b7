import {
  type ListedPerson,
  listContactsOfAspect,
  listContactsOfUser,
} from '../../persistence/contacts/list-contacts.js'
import { findAuthor } from '../../persistence/people/find-person-with-relationship.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

type ContactListRefusal = 'person_not_found'

/** Refuses lists of other people's contacts: contacts are visible to their owner only. */
export async function requireOwnContacts(pod: Pick<Pod, 'db'>, viewer: Viewer, personGuid: string): Promise<void> {
  const person = await findAuthor(pod.db, personGuid)
  if (person?.id === viewer.personId) return
  throw new Refusal<ContactListRefusal>('person_not_found', 'You may list only your own contacts.')
}

/** Lists people with whom the viewer shares or who share with the viewer. */
export async function listContacts(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfUser(pod.db, viewer.userId, page)
}

/** Lists the people of an aspect. The caller has checked that the aspect belongs to the viewer. */
export async function listContactsInAspect(
  pod: Pick<Pod, 'db'>,
  aspectId: number,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfAspect(pod.db, aspectId, page)
}
