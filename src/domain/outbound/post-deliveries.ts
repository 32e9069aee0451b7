import { Post } from '../../persistence/models/post.js'
import { type DeliveryReport, findDeliveryReports } from '../../persistence/outbound/delivery-report.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { mayShowPost, postNotFound } from '../posts/post-access.js'
import { Refusal } from '../refusals.js'

/** The deliveries of a post for an admin, by pod. The recipients of a private post are known to its author only. */
export async function readDeliveriesOfPost(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  guid: string,
): Promise<readonly DeliveryReport[]> {
  requirePower(actor, 'administration')
  const [post, reports] = await Promise.all([
    Post.query(db).findOne({ guid }).select('id', 'public', 'publicBeforeHiding'),
    findDeliveryReports(db, 'post', guid),
  ])
  if (post === undefined && reports.length === 0) throw postNotFound()
  return post !== undefined && Post.isSentPublicly(post) ? reports : reports.map(withoutRecipients)
}

function withoutRecipients(report: DeliveryReport): DeliveryReport {
  return { ...report, missing: report.missing.map((delivery) => ({ ...delivery, person: null })) }
}

export interface OwnPostDeliveries {
  readonly public: boolean
  readonly reports: readonly DeliveryReport[]
}

/** The deliveries of a post for its author. */
export async function readOwnDeliveries(
  { db }: Pick<Services, 'db'>,
  viewer: Viewer,
  guid: string,
): Promise<OwnPostDeliveries> {
  const post = await Post.findReadable(db, viewer, guid)
  if (post === undefined || !mayShowPost(viewer, post)) throw postNotFound()
  if (post.authorId !== viewer.personId) throw new Refusal('not_author', 'This post is not yours.')
  return { public: post.public, reports: await findDeliveryReports(db, 'post', guid) }
}
