import type { Knex } from 'knex'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import { Comment } from '../../persistence/models/comment.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import { User } from '../../persistence/models/user.js'
import type { ContentIds } from '../../persistence/moderation/hidden-content.js'
import { newCommentRetraction, newPostRetraction } from '../posts/new-retractions.js'
import { commentNotFound, postNotFound } from '../posts/post-access.js'
import type { EntityToRetract } from '../posts/retract.js'
import type { Refusal } from '../refusals.js'
import { type Actor, requireActionOn } from './actor.js'

export interface ContentTarget {
  readonly type: 'post' | 'comment'
  readonly guid: string
}

/** A post or a comment as an action finds it. */
export interface FoundContent {
  readonly id: number
  readonly author: Person
  /** The account of a local author. */
  readonly user: User | undefined
  readonly public: boolean
  readonly isHidden: boolean
  readonly text: string
  readonly createdAt: Date
  readonly postGuid: string
  /** The case of the content. */
  readonly caseId: number | undefined
  /** Sent if a local person may retract the content; undefined otherwise. */
  readonly retraction: EntityToRetract | undefined
}

/**
 * Finds content for an action and locks its guid. Private content exists for moderators only if a user has reported it: a case that a
 * filter has opened does not show it.
 */
export async function findContent(
  transaction: Knex.Transaction,
  { type, guid }: ContentTarget,
): Promise<FoundContent | undefined> {
  await lockEntityKeys(transaction, [`${type}:${guid}`])
  const openedCase: { readonly id: number; readonly reportCount: number } | undefined = await transaction(
    'moderation_cases',
  )
    .where({ targetType: type, targetGuid: guid })
    .first('id', 'reportCount')
  const content = type === 'post' ? await findPost(transaction, guid) : await findComment(transaction, guid)
  if (content === undefined || !(content.public || (openedCase?.reportCount ?? 0) > 0)) return undefined
  const user = await User.query(transaction).findOne({ personId: content.author.id })
  return { ...content, user, caseId: openedCase?.id }
}

/** Refuses content of the actor, and content of moderators and admins for moderators. */
export function requireActionOnContent(actor: Actor, { user }: FoundContent): void {
  if (user !== undefined) requireActionOn(actor, user)
}

export function contentNotFound(type: ContentTarget['type']): Refusal {
  return type === 'post' ? postNotFound() : commentNotFound()
}

export function contentIdsOf({ type }: ContentTarget, { id }: Pick<FoundContent, 'id'>): ContentIds {
  return type === 'post' ? { postIds: [id], commentIds: [] } : { postIds: [], commentIds: [id] }
}

type WithoutCase = Omit<FoundContent, 'user' | 'caseId'>

async function findPost(transaction: Knex.Transaction, guid: string): Promise<WithoutCase | undefined> {
  const post = await Post.query(transaction).findOne({ guid }).withGraphFetched('author')
  if (post?.author === undefined) return undefined
  const { id, author, text, createdAt } = post
  return {
    id,
    author,
    text,
    createdAt,
    postGuid: guid,
    public: Post.isSentPublicly(post),
    isHidden: post.publicBeforeHiding !== null,
    retraction: author.podId === null ? newPostRetraction(post, author.id) : undefined,
  }
}

async function findComment(transaction: Knex.Transaction, guid: string): Promise<WithoutCase | undefined> {
  const comment = await Comment.query(transaction).findOne({ guid })
  if (comment === undefined) return undefined
  const { id, authorId, postId, text, createdAt } = comment
  const author = await Person.query(transaction).findById(authorId).throwIfNotFound()
  const post = await Post.query(transaction).findById(postId).withGraphFetched('author').throwIfNotFound()
  if (post.author === undefined) return undefined
  const isAuthorLocal = author.podId === null
  const isRetractable = isAuthorLocal || post.author.podId === null
  const retractedById = isAuthorLocal ? authorId : post.author.id
  return {
    id,
    author,
    text,
    createdAt,
    postGuid: post.guid,
    public: Post.isSentPublicly(post),
    isHidden: comment.hidden,
    retraction: isRetractable ? await newCommentRetraction(transaction, comment, post, retractedById) : undefined,
  }
}
