import { hash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { groupCommit } from '../../jobs/group-commit.js'
import { AccessToken, type TokenHolder } from '../../persistence/models/access-token.js'
import type { ClientApiDialect } from '../../persistence/models/client.js'
import { Comment } from '../../persistence/models/comment.js'
import { Block } from '../../persistence/models/contact.js'
import { Post } from '../../persistence/models/post.js'
import { type ReadablePost, readablePost } from '../../persistence/posts/find-readable-post.js'
import type { Visibility } from '../../persistence/posts/visibility.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'
import { ALWAYS_GRANTED, isScope, type Scope } from './scopes.js'

/** The user in whose name something is asked, and what the token lets them do. */
export interface Viewer {
  readonly userId: number
  readonly personId: number
  /** Who came with a token has both. */
  readonly authorizationId?: number
  readonly tokenId?: number
  readonly scopes: ReadonlySet<Scope>
  /** Not set: that of the setting. */
  readonly dialect?: ClientApiDialect
  /** A replica that has not come as far in the log of the database would show them a past. */
  readonly writtenUpTo?: number
}

/** What is stored of a token: whoever reads the database cannot use it. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

/** Finds out who asks. */
export interface Viewers {
  /** Undefined: the token is unknown, expired or revoked, or its account is closed or locked. */
  find(token: string): Promise<Viewer | undefined>
}

/** Tokens that come at the same moment are looked up together; nothing is remembered of them. */
export function openViewers({ db }: Pick<Pod, 'db'>): Viewers {
  const ask = groupCommit(
    { atOnce: Number.POSITIVE_INFINITY, items: TOKENS_AT_ONCE, bytes: Number.POSITIVE_INFINITY, sizeOf: () => 0 },
    async (tokens: readonly string[]) => {
      const each = [...new Set(tokens)]
      const holders = await AccessToken.holdersOf(db, each.map(hashToken))
      return new Map(each.map((token, place) => [token, holders.get(place)]))
    },
  )
  return {
    async find(token) {
      const holder = (await ask([token])).get(token)
      return holder && viewerFor(holder)
    },
  }
}

const TOKENS_AT_ONCE = 100

/** Undefined as above. */
export async function findViewer(pod: Pick<Pod, 'db'>, token: string): Promise<Viewer | undefined> {
  return openViewers(pod).find(token)
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
  const { userId, personId, authorizationId, tokenId, writtenUpTo } = holder
  return {
    userId,
    personId,
    authorizationId,
    tokenId,
    ...(writtenUpTo !== null && { writtenUpTo }),
    ...(holder.dialect !== null && { dialect: holder.dialect }),
    scopes: holder.narrowed ? new Set(holder.scopes.split(' ').filter(isScope)) : scopesOf(holder.scopes),
  }
}

/** By the text they are read from: there are far fewer kinds of clients than requests. */
const knownScopes = new LRUCache<string, ReadonlySet<Scope>>({ max: 1_000 })

function scopesOf(text: string): ReadonlySet<Scope> {
  const known = knownScopes.get(text)
  if (known !== undefined) return known
  const scopes = new Set([...text.split(' ').filter(isScope), ALWAYS_GRANTED])
  knownScopes.set(text, scopes)
  return scopes
}

/** A post that the viewer may see and the token may show. Whether it is hidden or not there is nobody's business. */
export async function requirePost(pod: Pick<Pod, 'db'>, viewer: Viewer, guid: string): Promise<Post> {
  const post = await Post.readableBy(pod.db, viewer, guid).withGraphFetched('author')
  if (!post || !mayShow(viewer, post)) throw noSuchPost()
  return post
}

/** One that stands under this post. */
export async function requireComment(pod: Pick<Pod, 'db'>, { id }: Post, guid: string): Promise<Comment> {
  const comment = await Comment.query(pod.db).findOne({ guid, postId: id })
  if (!comment) throw noSuchComment()
  return comment
}

/** Whether a token may show what its user may see. */
export function mayShow(viewer: Viewer, post: Pick<Post, 'public'>): boolean {
  return post.public || visibilityFor(viewer) === 'readable'
}

/** A token that may show nothing private does not show the viewer's own either. */
export function visibilityFor({ scopes }: Viewer): Visibility {
  return scopes.has('private:read') ? 'readable' : 'public'
}

/** A post, or a comment under it. */
interface Target {
  readonly postGuid: string
  readonly commentGuid?: string | undefined
}

/** The same where nothing of the post is needed but its place. */
export async function requireTarget(pod: Pick<Pod, 'db'>, viewer: Viewer, target: Target): Promise<ReadablePost> {
  const post = await readablePost(pod.db, viewer, target)
  if (!post || !mayShow(viewer, post)) throw noSuchPost()
  if (target.commentGuid !== undefined && post.commentId === null) throw noSuchComment()
  return post
}

/** Only people of this pod are asked: another pod answers for its own. */
export async function isBlockedBy(pod: Pick<Pod, 'db'>, personId: number, viewer: Viewer): Promise<boolean> {
  return Block.isThere(pod.db, { by: personId, personId: viewer.personId })
}

export function noSuchPost(): Refusal<'post_not_found'> {
  return new Refusal('post_not_found', 'This post does not exist, or you may not read it.')
}

export function noSuchComment(): Refusal<'comment_not_found'> {
  return new Refusal('comment_not_found', 'This post has no comment with this guid.')
}
