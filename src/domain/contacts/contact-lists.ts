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

/** People show their contacts to nobody but themselves. */
export async function requireOwnContacts(pod: Pick<Pod, 'db'>, viewer: Viewer, personGuid: string): Promise<void> {
  const person = await findAuthor(pod.db, personGuid)
  if (person?.id === viewer.personId) return
  throw new Refusal<ContactListRefusal>('person_not_found', 'You may list only your own contacts.')
}

/** Whoever the viewer shares with, and whoever shares with the viewer. */
export async function listContacts(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfUser(pod.db, viewer.userId, page)
}

/** Whoever is in an aspect, which must be the viewer's. */
export async function listContactsInAspect(
  pod: Pick<Pod, 'db'>,
  aspectId: number,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listContactsOfAspect(pod.db, aspectId, page)
}
