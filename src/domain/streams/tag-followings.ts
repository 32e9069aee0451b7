import { Tag } from '../../persistence/models/tag.js'
import { countFollowedTags, findFollowedTags, listFollowedTagNames } from '../../persistence/posts/list-tags.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { LIST_LIMITS } from '../limits.js'
import { normaliseTagName, requireTagName } from '../posts/tags.js'
import { Refusal } from '../refusals.js'

/** Lists the tags that the viewer follows, by name. */
export async function listFollowedTags(services: Pick<Services, 'db'>, viewer: Viewer): Promise<readonly string[]> {
  return listFollowedTagNames(services.db, viewer.userId)
}

/** Follows a tag. The tag need not occur in any post yet. The limit is not locked: simultaneous requests can exceed it by their own number. */
export async function followTag(services: Pick<Services, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const name = requireTagName(text)
  if ((await countFollowedTags(services.db, viewer.userId)) >= LIST_LIMITS.followedTags) {
    if ((await findFollowedTags(services.db, viewer.userId, [name])).size > 0) throw alreadyFollowed()
    throw new Refusal('too_many_tags', `You follow ${LIST_LIMITS.followedTags} tags, the maximum: unfollow some first.`)
  }
  const wasAdded = await Tag.follow(services.db, viewer.userId, name)
  if (!wasAdded) throw alreadyFollowed()
}

function alreadyFollowed(): Refusal {
  return new Refusal('already_followed', 'You already follow this tag.')
}

export async function unfollowTag(services: Pick<Services, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const wasRemoved = await Tag.unfollow(services.db, viewer.userId, normaliseTagName(text))
  if (!wasRemoved) throw new Refusal('not_followed', 'You do not follow this tag.')
}
