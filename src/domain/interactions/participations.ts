import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { Participation } from '../../persistence/models/participation.js'
import { Person } from '../../persistence/models/person.js'
import type { Post } from '../../persistence/models/post.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'

/**
 * Subscribes the viewer to a post after an interaction, and unmutes it. The first interaction sends a participation to a remote
 * author. Authors receive notifications about their own posts without a participation.
 */
export async function participateInPost(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  viewer: Viewer,
  post: Pick<Post, 'id' | 'authorId'>,
): Promise<void> {
  await unmutePost(transaction, viewer, post)
  if (post.authorId === viewer.personId) return
  const [participation] = await Participation.subscribe(transaction, post.id, [viewer.personId])
  if (participation?.count === 1) await enqueueParticipation(services, transaction, post, participation)
}

export async function unmutePost(
  transaction: Knex.Transaction,
  { userId }: Viewer,
  { id: postId }: Pick<Post, 'id'>,
): Promise<void> {
  await transaction('mutedPosts').where({ userId, postId }).delete()
}

/** Enqueues a participation if the author is remote. Local authors need none. */
export async function enqueueParticipation(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { authorId }: Pick<Post, 'authorId'>,
  participation: Pick<Participation, 'guid' | 'authorId'>,
): Promise<void> {
  const author = await Person.query(transaction).findById(authorId).select('podId')
  if (author === undefined || author.podId === null) return
  await enqueueJobs(services, transaction, [
    newDispatchJob(participation.authorId, { record: 'participation', guid: participation.guid }),
  ])
}
