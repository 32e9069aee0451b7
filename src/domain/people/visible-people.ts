import {
  findAuthor,
  findPersonWithRelationship,
  type PersonWithRelationship,
} from '../../persistence/people/find-person-with-relationship.js'
import { type ListedPhoto, listPhotosOfPerson } from '../../persistence/photos/list-photos.js'
import { type ListedPost, listPostsOfPerson } from '../../persistence/posts/list-posts.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import type { Pod } from '../../pod/pod.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

type PersonRefusal = 'person_not_found'

/** A person as the viewer may see them. */
export interface VisiblePerson extends PersonWithRelationship {
  /** The viewer themselves. */
  readonly isOwn: boolean
  /** Birthday, gender, location and bio may be told. */
  readonly showsDetails: boolean
  /** What the viewer has to do with the person may be told. */
  readonly showsRelationship: boolean
}

/** Who hides from search is shown only to those who may see the viewer's contacts. */
export async function findVisiblePerson(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<VisiblePerson> {
  const person = await findPersonWithRelationship(pod.db, viewer, guid)
  const own = person?.id === viewer.personId
  const showsRelationship = viewer.scopes.has('contacts:read')
  const visibilityCondition = own || showsRelationship || person?.profile.searchable
  if (person === undefined || person.closed || !visibilityCondition) throw personNotFound()

  const { publicDetails } = person.profile
  const trusted = own ? viewer.scopes.has('profile:read_private') : person.relationship.sharing
  return { ...person, isOwn: own, showsDetails: publicDetails || trusted, showsRelationship: own || showsRelationship }
}

/** What somebody has written and the viewer may see, hidden or not. */
export async function listVisiblePosts(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  authorGuid: string,
  page: TimePage,
): Promise<Page<ListedPost>> {
  return requireAuthorOfEmptyPage(
    pod,
    authorGuid,
    await listPostsOfPerson(pod.db, viewer, { authorGuid, visibility: visibilityForViewer(viewer), page }),
  )
}

/** What somebody has shown in pictures and the viewer may see. */
export async function listVisiblePhotos(
  pod: Pick<Pod, 'db'>,
  viewer: Viewer,
  authorGuid: string,
  page: TimePage,
): Promise<Page<ListedPhoto>> {
  return requireAuthorOfEmptyPage(
    pod,
    authorGuid,
    await listPhotosOfPerson(pod.db, viewer, { authorGuid, visibility: visibilityForViewer(viewer), page }),
  )
}

/** Somebody whose posts and photos can be listed: whoever is known here and has not left. */
export async function requireAuthor(pod: Pick<Pod, 'db'>, guid: string): Promise<void> {
  const author = await findAuthor(pod.db, guid)
  if (author === undefined || author.closed) throw personNotFound()
}

/** Only where nothing is found may there be nobody whose it would be. */
async function requireAuthorOfEmptyPage<Item>(
  pod: Pick<Pod, 'db'>,
  authorGuid: string,
  page: Page<Item>,
): Promise<Page<Item>> {
  if (page.items.length === 0) await requireAuthor(pod, authorGuid)
  return page
}

function personNotFound(): Refusal<PersonRefusal> {
  return new Refusal('person_not_found', 'This person does not exist, or you may not see them.')
}
