import type { Knex } from 'knex'
import { lockEntityKeys } from '../../jobs/waiting/lock-entity-keys.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Comment } from '../../persistence/models/comment.js'
import { Person } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { Post } from '../../persistence/models/post.js'
import { Tombstone } from '../../persistence/models/tombstone.js'
import { User } from '../../persistence/models/user.js'
import { addCaseEvent } from '../../persistence/moderation/cases.js'
import type { Pod } from '../../pod/pod.js'
import { newCommentRetraction, newPostRetraction } from '../posts/new-retractions.js'
import { commentNotFound, postNotFound } from '../posts/post-access.js'
import { destroyAndCancelCreations, type EntityToRetract, retractEntity } from '../posts/retract.js'
import { type Actor, requireActionOn, requirePower } from './actor.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from './record-action.js'

export interface ContentTarget {
  readonly type: 'post' | 'comment'
  readonly guid: string
}

export interface RemovalOutcome extends ActionOutcome {
  /** A retraction was sent. False: the content was removed from this pod only. */
  readonly retracted: boolean
}

/** Content as it is found for its removal. */
interface FoundContent {
  readonly id: number
  readonly public: boolean
  readonly author: Person
  /** Sent if a local person may retract the content; undefined otherwise. */
  readonly retraction: EntityToRetract | undefined
}

type RemovalPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'claimedKey'>

/**
 * Removes a post or a comment for good. A retraction is sent in the name of a local author, or of the local author of the post of a
 * comment. Other content is removed from this pod alone, and tombstones keep it away.
 */
export async function removeContent(
  pod: RemovalPod,
  actor: Actor,
  { type, guid }: ContentTarget,
  options: ActionOptions,
): Promise<RemovalOutcome> {
  requirePower(actor, 'moderation')
  return inTransaction(pod, async (transaction) => {
    await lockEntityKeys(transaction, [`${type}:${guid}`])
    const ownCase: { readonly id: number } | undefined = await transaction('moderation_cases')
      .where({ targetType: type, targetGuid: guid })
      .first('id')
    const found = type === 'post' ? await findPost(transaction, guid) : await findComment(transaction, guid)
    if (found === undefined) {
      if (await isRemoved(transaction, type, guid)) return { changed: false, retracted: false }
      throw notFound(type)
    }
    // Private content exists for moderators only if it was reported.
    if (!found.public && ownCase === undefined) throw notFound(type)
    const reason = requireReason(options)
    const user = await User.query(transaction).findOne({ personId: found.author.id })
    if (user !== undefined) requireActionOn(actor, user)

    if (ownCase !== undefined) {
      await transaction('moderation_cases').where({ id: ownCase.id }).update({ targetDeleted: 'moderator' })
    }
    if (found.retraction !== undefined) await retractEntity(pod, transaction, found.retraction)
    else await removeHere(transaction, actor, { type, guid }, found)

    const caseId = options.caseId ?? ownCase?.id
    const action = await recordAction(pod, transaction, actor, {
      kind: 'remove',
      target: { type, guid, label: found.author.address },
      reason,
      caseId,
      undo: { possible: false },
      after: { retracted: found.retraction !== undefined },
    })
    if (caseId !== undefined) {
      const at = pod.now()
      await addCaseEvent(transaction, {
        caseId,
        event: 'action',
        actorId: actor.userId,
        text: reason,
        actionId: action.id,
        at,
      })
    }
    return { changed: true, retracted: found.retraction !== undefined, action }
  })
}

async function findPost(transaction: Knex.Transaction, guid: string): Promise<FoundContent | undefined> {
  const post = await Post.query(transaction).findOne({ guid }).withGraphFetched('author')
  if (post?.author === undefined) return undefined
  const { id, author, public: isPublic } = post
  const retraction = author.podId === null ? newPostRetraction(post, author.id) : undefined
  return { id, public: isPublic, author, retraction }
}

async function findComment(transaction: Knex.Transaction, guid: string): Promise<FoundContent | undefined> {
  const comment = await Comment.query(transaction).findOne({ guid })
  if (comment === undefined) return undefined
  const { id, authorId, postId } = comment
  const [author, post] = [
    await Person.query(transaction).findById(authorId).throwIfNotFound(),
    await Post.query(transaction).findById(postId).withGraphFetched('author').throwIfNotFound(),
  ]
  if (post.author === undefined) return undefined
  const isAuthorLocal = author.podId === null
  const isEntitled = isAuthorLocal || post.author.podId === null
  const retractedById = isAuthorLocal ? authorId : post.author.id
  const retraction = isEntitled ? await newCommentRetraction(transaction, comment, post, retractedById) : undefined
  return { id, public: post.public, author, retraction }
}

/**
 * Deletes remote content. The tombstone of its author keeps the content away, that of a local person also what other people send about
 * it: comments, likes and reshares, for which the pod would fetch it again.
 */
async function removeHere(
  transaction: Knex.Transaction,
  actor: Actor,
  { type, guid }: ContentTarget,
  { id, author }: FoundContent,
): Promise<void> {
  const photos = type === 'post' ? await Photo.query(transaction).where({ postId: id }).select('guid') : []
  const local = await Person.query(transaction)
    .whereNull('podId')
    .orderByRaw('id = ? desc, id', [actor.personId ?? 0])
    .first()
    .throwIfNotFound()
  await destroyAndCancelCreations(transaction, type, [id])
  const targetType = type === 'post' ? 'Post' : 'Comment'
  await Tombstone.insertMany(transaction, [
    { type: targetType, guid, by: author.address },
    { type: targetType, guid, by: local.address },
    ...photos.map((photo) => ({ type: 'Photo', guid: photo.guid, by: author.address })),
  ])
}

async function isRemoved(transaction: Knex.Transaction, type: string, guid: string): Promise<boolean> {
  const action = await transaction('moderation_actions')
    .where({ kind: 'remove', targetType: type, targetGuid: guid })
    .first('id')
  return action !== undefined
}

function notFound(type: ContentTarget['type']) {
  return type === 'post' ? postNotFound() : commentNotFound()
}
