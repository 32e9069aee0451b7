import { Tag } from '../../persistence/models/tag.js'
import { listFollowedTagNames } from '../../persistence/posts/list-tags.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { normaliseTagName, requireTagName } from '../posts/tags.js'
import { Refusal } from '../refusals.js'

/** Lists the tags that the viewer follows, by name. */
export async function listFollowedTags(services: Pick<Services, 'db'>, viewer: Viewer): Promise<readonly string[]> {
  return listFollowedTagNames(services.db, viewer.userId)
}

/** Follows a tag. The tag need not occur in any post yet. */
export async function followTag(services: Pick<Services, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const wasAdded = await Tag.follow(services.db, viewer.userId, requireTagName(text))
  if (!wasAdded) throw new Refusal('already_followed', 'You already follow this tag.')
}

export async function unfollowTag(services: Pick<Services, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const wasRemoved = await Tag.unfollow(services.db, viewer.userId, normaliseTagName(text))
  if (!wasRemoved) throw new Refusal('not_followed', 'You do not follow this tag.')
}
