import { Tag } from '../../persistence/models/tag.js'
import { listFollowedTagNames } from '../../persistence/posts/list-tags.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { normaliseTagName, requireTagName } from '../posts/tags.js'
import { Refusal } from '../refusals.js'

type TagFollowingRefusal = 'already_followed' | 'not_followed'

/** Lists the tags that the viewer follows, by name. */
export async function listFollowedTags(pod: Pick<Pod, 'db'>, viewer: Viewer): Promise<readonly string[]> {
  return listFollowedTagNames(pod.db, viewer.userId)
}

/** Follows a tag. The tag need not occur in any post yet. */
export async function followTag(pod: Pick<Pod, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const wasAdded = await Tag.follow(pod.db, viewer.userId, requireTagName(text))
  if (!wasAdded) throw refusal('already_followed', 'You already follow this tag.')
}

export async function unfollowTag(pod: Pick<Pod, 'db'>, viewer: Viewer, text: string): Promise<void> {
  const wasRemoved = await Tag.unfollow(pod.db, viewer.userId, normaliseTagName(text))
  if (!wasRemoved) throw refusal('not_followed', 'You do not follow this tag.')
}

function refusal(reason: TagFollowingRefusal, message: string): Refusal<TagFollowingRefusal> {
  return new Refusal(reason, message)
}
