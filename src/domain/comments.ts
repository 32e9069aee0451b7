import { inTransaction } from '../persistence/errors.js'
import { Comment } from '../persistence/models/comment.js'
import { Block } from '../persistence/models/contact.js'
import { Mention } from '../persistence/models/mention.js'
import { Participation } from '../persistence/models/participation.js'
import { Person } from '../persistence/models/person.js'
import { Post } from '../persistence/models/post.js'
import { Tag } from '../persistence/models/tag.js'
import { User } from '../persistence/models/user.js'
import type { Pod } from '../pod.js'
import { elementsOf } from '../protocol/entities/relayable-elements.js'
import type { CommentEntity } from '../protocol/entities/relayables.js'
import { readTags } from '../protocol/mentions.js'
import { findReadablePost, type Viewer } from './access.js'
import { mentionedIn, newGuid } from './posts.js'
import { privateKeyOf } from './private-keys.js'
import { Refusal } from './refusals.js'
import { faultOfText } from './texts.js'

type CreateCommentRefusal = 'post_missing' | 'text_invalid' | 'blocked'

export async function createComment(
  pod: Pod,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly text: string },
): Promise<Comment> {
  const post = await findReadablePost(pod, viewer, input.postGuid)
  if (!post) throw refusal('post_missing', 'There is no such post.')
  const text = input.text.trim()
  if (text === '') throw refusal('text_invalid', 'A comment needs some text.')
  const fault = faultOfText(text)
  if (fault !== undefined) throw refusal('text_invalid', `The text ${fault}.`)
  if (await isBlockedBy(pod, post.authorId, viewer)) {
    throw refusal('blocked', 'The author of this post does not want your comments.')
  }

  const guid = newGuid()
  const createdAt = pod.now()
  const signature = await signatureOf(pod, viewer, post, { guid, text, createdAt })
  return inTransaction(pod.db, async (transaction) => {
    const comment = await Comment.query(transaction)
      .insert({ guid, postId: post.id, authorId: viewer.personId, text, createdAt, ...signature })
      .returning('*')
    await Tag.attach(transaction, { commentId: comment.id, createdAt: post.createdAt }, readTags(text))
    await Mention.attach(transaction, { commentId: comment.id }, mentionedIn(text))
    if (post.authorId !== viewer.personId) await Participation.hold(transaction, post.id, [viewer.personId])
    await transaction('mutedPosts').where({ postId: post.id, userId: viewer.userId }).delete()
    await Post.query(transaction)
      .findById(post.id)
      .patch({
        commentsCount: transaction.raw('comments_count + 1'),
        interactedAt: transaction.raw('greatest(interacted_at, ?)', [createdAt]),
      })
    return comment
  })
}

/** What everybody needs who passes the comment on, or nothing where the envelope of the post's author says it all. */
async function signatureOf(
  pod: Pod,
  viewer: Viewer,
  post: Post,
  comment: Pick<Comment, 'guid' | 'text' | 'createdAt'>,
): Promise<Partial<Pick<Comment, 'authorSignature' | 'signedElements'>>> {
  if (post.authorId === viewer.personId) return {}
  const author = await Person.query(pod.db).findById(viewer.personId).throwIfNotFound()
  const entity: CommentEntity = {
    type: 'comment',
    author: author.address,
    guid: comment.guid,
    parent_guid: post.guid,
    text: comment.text,
    created_at: comment.createdAt,
  }
  const key = await privateKeyOf(pod, author.id)
  return { authorSignature: await pod.crypto.signRelayable(entity, key), signedElements: elementsOf(entity) }
}

/** Only people of this pod are asked: another pod answers for its own. */
async function isBlockedBy(pod: Pod, personId: number, viewer: Viewer): Promise<boolean> {
  const block = await Block.query(pod.db)
    .where({ personId: viewer.personId })
    .whereIn('userId', User.query(pod.db).select('id').where({ personId }))
    .first()
  return block !== undefined
}

function refusal(reason: CreateCommentRefusal, message: string): Refusal<CreateCommentRefusal> {
  return new Refusal(reason, message)
}
