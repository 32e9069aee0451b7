import {
  findAuthor,
  findPersonWithRelationship,
  type PersonWithRelationship,
} from '../../persistence/people/find-person-with-relationship.js'
import { type ListedPhoto, listPhotosOfPerson } from '../../persistence/photos/list-photos.js'
import { type ListedPost, listPostsOfPerson } from '../../persistence/posts/list-posts.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'
import { findMovedLocalPerson } from './moved-people.js'

/** A person as the viewer may see them. */
export interface VisiblePerson extends PersonWithRelationship {
  /** True for the viewer's own person. */
  readonly isOwn: boolean
  /** Birthday, gender, location and bio may be shown. */
  readonly canShowDetails: boolean
  /** Sharing and blocks between the viewer and the person may be shown. */
  readonly canShowRelationship: boolean
}

/** Finds a person for a viewer. People who are not searchable need the scope `contacts:read`. */
export async function getVisiblePerson(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<VisiblePerson> {
  const person = await findPersonWithRelationship(services.db, viewer, guid)
  const isOwn = person?.id === viewer.personId
  const canShowRelationship = viewer.scopes.has('contacts:read')
  const isVisible = isOwn || canShowRelationship || person?.profile.searchable
  if (person?.isClosed) throw await movedOrNotFound(services, guid)
  if (person === undefined || !isVisible) throw personNotFound()

  const { publicDetails } = person.profile
  const isTrusted = isOwn ? viewer.scopes.has('profile:read_private') : person.relationship.sharing
  return {
    ...person,
    isOwn,
    canShowDetails: publicDetails || isTrusted,
    canShowRelationship: isOwn || canShowRelationship,
  }
}

/** Lists posts of a person that the viewer may see. Posts that the viewer has hidden are included. */
export async function listVisiblePosts(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  authorGuid: string,
  page: TimePage,
): Promise<Page<ListedPost>> {
  return requireAuthorOfEmptyPage(
    services,
    authorGuid,
    await listPostsOfPerson(services.db, viewer, { authorGuid, visibility: visibilityForViewer(viewer), page }),
  )
}

/** Lists photos of a person that the viewer may see. */
export async function listVisiblePhotos(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  authorGuid: string,
  page: TimePage,
): Promise<Page<ListedPhoto>> {
  return requireAuthorOfEmptyPage(
    services,
    authorGuid,
    await listPhotosOfPerson(services.db, viewer, { authorGuid, visibility: visibilityForViewer(viewer), page }),
  )
}

/** Throws unless the person is known and their account is open. */
export async function requireAuthor(services: Pick<Services, 'db'>, guid: string): Promise<void> {
  const author = await findAuthor(services.db, guid)
  if (author === undefined || author.isClosed) throw personNotFound()
}

/** Checks that the author exists only if the page is empty, so that most requests need no second statement. */
async function requireAuthorOfEmptyPage<Item>(
  services: Pick<Services, 'db'>,
  authorGuid: string,
  page: Page<Item>,
): Promise<Page<Item>> {
  if (page.items.length === 0) await requireAuthor(services, authorGuid)
  return page
}

/** Leads from the old guid of a moved local person to the new account. */
async function movedOrNotFound(services: Pick<Services, 'db'>, guid: string): Promise<Refusal> {
  const movedPerson = await findMovedLocalPerson(services, { guid })
  if (movedPerson === undefined || movedPerson.newest.isBlocked) return personNotFound()
  const { guid: newGuid, address } = movedPerson.newest
  const details = { moved_to: { guid: newGuid, diaspora_id: address } }
  return new Refusal('moved', `This person has moved to ${address}.`, { details })
}

function personNotFound(): Refusal {
  return new Refusal('person_not_found', 'This person does not exist, or you may not see them.')
}
