import type { ListedPost } from '../../persistence/posts/list-posts.js'
import type { Page, TimePage } from '../../persistence/sql/keyset-page.js'
import {
  listAspectStreamPosts,
  listPostsWithTag,
  listStreamPosts,
  type Stream,
} from '../../persistence/streams/list-streams.js'
import type { Services } from '../../services/services.js'
import { type Viewer, visibilityForViewer } from '../accounts/viewers.js'
import { normaliseSearchedTag } from '../posts/tags.js'

/** Lists a stream of posts that the viewer may see and the token may show. */
export async function listStream(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  stream: Stream,
  page: TimePage,
): Promise<Page<ListedPost>> {
  return listStreamPosts(services.db, viewer, { stream, visibility: visibilityForViewer(viewer), page })
}

/** Lists posts of the viewer and of people in these aspects; without aspects, of people in any aspect. */
export async function listAspectStream(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  aspectIds: readonly number[],
  page: TimePage,
): Promise<Page<ListedPost>> {
  if (aspectIds.length === 0) return listStream(services, viewer, 'all aspects', page)
  return listAspectStreamPosts(services.db, viewer, { aspectIds, visibility: visibilityForViewer(viewer), page })
}

/** Lists posts with a tag that was typed into a search. */
export async function searchPosts(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  tag: string,
  page: TimePage,
): Promise<Page<ListedPost>> {
  const name = normaliseSearchedTag(tag)
  if (name === undefined) return { items: [], hasMore: false }
  return listPostsWithTag(services.db, viewer, { tag: name, visibility: visibilityForViewer(viewer), page })
}
