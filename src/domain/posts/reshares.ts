import type { Knex } from 'knex'
import { isUniqueViolation } from '../../persistence/database/errors.js'
import { findTrace, inRequestTransaction } from '../../persistence/database/transactions.js'
import { type ListedReaction, listReactions } from '../../persistence/interactions/list-reactions.js'
import { Participation } from '../../persistence/models/participation.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import { addActivityEntries } from '../../persistence/notifications/activity.js'
import type { ReadablePost } from '../../persistence/posts/find-readable-post.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { participateInPost } from '../interactions/participations.js'
import { newGuid } from '../new-guid.js'
import { enqueuePublication } from '../notifications/enqueue-live-events.js'
import { notifyAbout } from '../notifications/notifications.js'
import { Refusal } from '../refusals.js'
import { requirePost } from './post-access.js'

/** Lists reshares of a post, the viewer's own first. Private posts have none. */
export async function listReshares(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  post: Pick<ReadablePost, 'id' | 'public'>,
  page: OffsetPage,
): Promise<Page<ListedReaction>> {
  if (!post.public) return { items: [], hasMore: false }
  return listReactions(services.db, viewer, { kind: 'reshares-of-post', id: post.id }, page)
}

/** Reshares a public post of another person. A reshare of a reshare refers to the root. */
export async function createReshare(services: Services, viewer: Viewer, postGuid: string): Promise<Post> {
  const post = await requirePost(services, viewer, postGuid)
  const root = post.type === 'Reshare' ? await Post.findRoot(services.db, post) : post
  if (root === undefined) throw new Refusal('root_not_found', 'The original post of this reshare was deleted.')
  if (!root.public) throw new Refusal('not_public', 'Only public posts can be reshared.')
  if (root.authorId === viewer.personId) throw new Refusal('own_post', 'You cannot reshare your own post.')

  try {
    return await inRequestTransaction(services, (transaction) => insertReshare(services, transaction, viewer, root))
  } catch (error) {
    if (!isUniqueViolation(error, 'posts_reshare_once')) throw error
    throw new Refusal('already_reshared', 'You have already reshared this post.')
  }
}

async function insertReshare(
  services: Services,
  transaction: Knex.Transaction,
  viewer: Viewer,
  root: Post,
): Promise<Post> {
  await Post.lock(transaction, root.id)
  const reshare = await Post.query(transaction)
    .insert({
      guid: newGuid(),
      authorId: viewer.personId,
      type: 'Reshare',
      public: true,
      rootId: root.id,
      createdAt: services.now(),
      interactedAt: services.now(),
      traceId: findTrace(transaction),
    })
    .returning('*')
  await addActivityEntries(transaction, reshare.id, [viewer.personId])
  await participateInPost(services, transaction, viewer, root)
  await subscribeRootAuthor(transaction, root, reshare)
  await Post.query(transaction)
    .findById(root.id)
    .patch({ resharesCount: transaction.raw('reshares_count + 1') })
  const notifications = await notifyAbout(transaction, { reshares: [reshare.id] }, reshare.createdAt)
  await enqueuePublication(services, transaction, {
    senderId: viewer.personId,
    record: { record: 'post', guid: reshare.guid },
    rows: { notifications, posts: [reshare.id] },
  })
  return reshare
}

/** Subscribes the author of the root to the reshare if they are local. Remote authors are subscribed by their own pod. */
async function subscribeRootAuthor(transaction: Knex.Transaction, root: Post, reshare: Post): Promise<void> {
  const author = await Person.query(transaction).findById(root.authorId).whereNull('podId')
  if (author !== undefined) await Participation.subscribe(transaction, reshare.id, [author.id])
}
