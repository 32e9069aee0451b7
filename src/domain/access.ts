import { createHash } from 'node:crypto'
import { AccessToken, type TokenHolder } from '../persistence/models/access-token.js'
import { Block } from '../persistence/models/contact.js'
import { Post } from '../persistence/models/post.js'
import { User } from '../persistence/models/user.js'
import { type ReadablePost, readablePost } from '../persistence/readable-post.js'
import type { Sight } from '../persistence/sight.js'
import type { Pod } from '../pod.js'
import { Refusal } from './refusals.js'
import { ALWAYS_GRANTED, isScope, type Scope } from './scopes.js'

/** The user in whose name something is asked, and what the token lets them do. */
export interface Viewer {
  readonly userId: number
  readonly personId: number
  /** Who came with a token has both. */
  readonly authorizationId?: number
  readonly tokenId?: number
  readonly scopes: ReadonlySet<Scope>
}

/** What is stored of a token: whoever reads the database cannot use it. */
export function hashToken(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}

/** Undefined: the token is unknown, expired or revoked, or its account is closed or locked. */
export async function findViewer(pod: Pick<Pod, 'db'>, token: string): Promise<Viewer | undefined> {
  const holder = await AccessToken.viewerOf(pod.db, hashToken(token))
  return holder && viewerFor(holder)
}

/** The same viewers as they are now, by the ids of their tokens; whose token counts no longer is not among them. */
export async function findViewersAgain(
  pod: Pick<Pod, 'db'>,
  tokenIds: readonly number[],
): Promise<ReadonlyMap<number, Viewer>> {
  const holders = await AccessToken.viewersOf(pod.db, tokenIds)
  return new Map(
    holders.flatMap((holder) => {
      const viewer = viewerFor(holder)
      return viewer === undefined ? [] : [[holder.tokenId, viewer]]
    }),
  )
}

function viewerFor(holder: TokenHolder): Viewer | undefined {
  if (holder.expired || holder.locked || holder.closed) return undefined
  const { userId, personId, authorizationId, tokenId } = holder
  return {
    userId,
    personId,
    authorizationId,
    tokenId,
    scopes: new Set([...holder.scopes.split(' ').filter(isScope), ALWAYS_GRANTED]),
  }
}

/** A post that the viewer may see and the token may show. Whether it is hidden or not there is nobody's business. */
export async function findReadablePost(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<Post | undefined> {
  const post = await Post.readableBy(pod.db, viewer, guid).withGraphFetched('author')
  return post?.public || viewer.scopes.has('private:read') ? post : undefined
}

/** A token that may show nothing private does not show the viewer's own either. */
export function sightOf({ scopes }: Viewer): Sight {
  return scopes.has('private:read') ? 'readable' : 'public'
}

/** A post, or a comment under it. */
interface Target {
  readonly postGuid: string
  readonly commentGuid?: string | undefined
}

type TargetRefusal = 'post_missing' | 'comment_missing'

/** The same where nothing of the post is needed but its place. */
export async function requireTarget(pod: Pick<Pod, 'db'>, viewer: Viewer, target: Target): Promise<ReadablePost> {
  const post = await readablePost(pod.db, viewer, target)
  if (!(post?.public || (post && viewer.scopes.has('private:read')))) {
    throw refusal('post_missing', 'There is no such post.')
  }
  if (target.commentGuid !== undefined && post.commentId === null) {
    throw refusal('comment_missing', 'There is no such comment under this post.')
  }
  return post
}

/** Only people of this pod are asked: another pod answers for its own. */
export async function isBlockedBy(pod: Pick<Pod, 'db'>, personId: number, viewer: Viewer): Promise<boolean> {
  const block = await Block.query(pod.db)
    .where({ personId: viewer.personId })
    .whereIn('userId', User.query(pod.db).select('id').where({ personId }))
    .first()
  return block !== undefined
}

function refusal(reason: TargetRefusal, message: string): Refusal<TargetRefusal> {
  return new Refusal(reason, message)
}
