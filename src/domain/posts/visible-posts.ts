import { findListedPost } from '../../persistence/posts/find-listed-post.js'
import type { ListedPost } from '../../persistence/posts/list-posts.js'
import type { Visibility } from '../../persistence/posts/visibility.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { postNotFound } from './post-access.js'

/** Finds a post that the viewer may see and the token may show. Posts that the viewer has hidden are returned too. */
export async function findVisiblePost(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedPost> {
  return getPost(services, viewer, guid, visibilityForViewer(viewer))
}

/** Undefined: no such post, or it is not visible. */
export async function findPostIfVisible(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedPost | undefined> {
  return findListedPost(services.db, viewer, { guid, visibility: visibilityForViewer(viewer) })
}

/** Finds a post that the viewer has just created, even if the token has no scope to read it. */
export async function findCreatedPost(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<ListedPost> {
  return getPost(services, viewer, guid, 'readable')
}

async function getPost(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
  visibility: Visibility,
): Promise<ListedPost> {
  const post = await findListedPost(services.db, viewer, { guid, visibility })
  if (post === undefined) throw postNotFound()
  return post
}
