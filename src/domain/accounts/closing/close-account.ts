import type { Knex } from 'knex'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Comment } from '../../../persistence/models/comment.js'
import { Post } from '../../../persistence/models/post.js'
import { type ClosingBy, User } from '../../../persistence/models/user.js'
import { endUndoOfClosing } from '../../../persistence/moderation/actions.js'
import { appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { lockAdmins, requireOtherAdmin, SYSTEM_ACTOR } from '../../moderation/actor.js'
import { type BackgroundTaskHandlers, continueBackgroundTask } from '../../operations/background-tasks.js'
import { newCommentRetraction, newPostRetraction } from '../../posts/new-retractions.js'
import { retractEntity } from '../../posts/retract.js'
import { Refusal } from '../../refusals.js'
import { requireNotPodmin, suspendAccess } from '../accounts.js'
import type { UserWithPerson } from '../operator/change-as-operator.js'
import { closeNow } from './close-now.js'

export interface ClosingOptions {
  readonly by: ClosingBy
  /** Days until the account is closed; without it those of the setting. */
  readonly days?: number
  /** Retract comments and posts before the account is closed. */
  readonly shouldRetractContent: boolean
}

/**
 * Begins the closing of an account. Until `closeAt` nothing is deleted or sent: sessions end, tokens are refused but kept, and
 * `cancelClosing` restores everything. The caller has locked the user. Refuses the last admin and the account of the podmin.
 */
export async function beginClosing(
  services: Pick<Services, 'config' | 'now'>,
  transaction: Knex.Transaction,
  user: UserWithPerson,
  { by, days = services.config.closeGraceDays, shouldRetractContent }: ClosingOptions,
): Promise<Date> {
  requireNotPodmin(services, user)
  requireOtherAdmin(await lockAdmins(transaction), user.id)
  const closeAt = new Date(services.now().getTime() + days * DAY_MS)
  await user.$query(transaction).patch({ closeAt, closingBy: by, closingRetracts: shouldRetractContent })
  await suspendAccess(transaction, user.person.address)
  return closeAt
}

/** Keeps an account whose closing has begun. Its owner cannot cancel the closing by a moderator. */
export async function cancelClosing(
  { now }: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  userId: number,
  by: ClosingBy,
): Promise<void> {
  const user = await User.query(transaction).findById(userId).forUpdate().throwIfNotFound()
  if (user.closeAt === null) return
  if (user.closedAt !== null || user.closeAt <= now()) {
    throw new Refusal('user_closed', 'The account is closed, or is being closed.')
  }
  if (by === 'owner' && user.closingBy === 'moderator') {
    throw new Refusal('closed_by_moderator', 'A moderator closes this account. Only moderators can keep it.')
  }
  await user.$query(transaction).patch({ closeAt: null, closingBy: null, closingRetracts: false })
}

/** Starts the closing of one account whose grace period is over, in the background. */
export async function startDueClosing(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  username: string,
): Promise<void> {
  const reason = 'The grace period of the account is over.'
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, { kind: KIND, target: username, total: 0, reason })
}

/** Closes all accounts whose grace period is over. Returns how many are being closed. */
export async function closeDueAccounts(
  services: Pick<Services, 'db' | 'requestContext' | 'jobs' | 'now'>,
): Promise<number> {
  const due = await User.query(services.db)
    .where('closeAt', '<=', services.now())
    .whereNull('closedAt')
    .orderBy('closeAt')
    .limit(CLOSING_BATCH_SIZE)
    .select('username')
  for (const { username } of due)
    await inRequestTransaction(services, (transaction) => startDueClosing(services, transaction, username))
  return due.length
}

const KIND = 'account.close' as const
const CLOSING_BATCH_SIZE = 100
/** Each takes some ten statements. */
const RETRACTION_BATCH_SIZE = 50

/** Retracts comments, then posts, and closes the account at the end. */
export const closingTaskHandlers: Pick<BackgroundTaskHandlers, typeof KIND> = {
  [KIND]: {
    async runChunk(services, transaction, { target }) {
      const user = await lockDueUser(services, transaction, target)
      const done = user?.closingRetracts ? await retractNext(services, transaction, user.personId) : 0
      return { done, skipped: 0 }
    },

    async complete(services, transaction, { target, reason }) {
      const user = await lockDueUser(services, transaction, target)
      if (user === undefined) return
      await closeNow(services, transaction, user)
      await endUndoOfClosing(transaction, user.person.guid)
      const entry = { actor: SYSTEM, via: 'system', action: 'account.closed', reason } as const
      const of = { type: 'person', guid: user.person.guid, label: user.username }
      await appendAuditEntry(transaction, { ...entry, target: of }, services.now())
    },
  },
}

const SYSTEM = { guid: SYSTEM_ACTOR.guid, name: SYSTEM_ACTOR.name, role: SYSTEM_ACTOR.role }

async function lockDueUser(
  { now }: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  username: string,
): Promise<UserWithPerson | undefined> {
  const user = await User.byUsername(transaction, username).forUpdate()
  const isDue = user?.closeAt !== null && user?.closeAt !== undefined && user.closeAt <= now() && user.closedAt === null
  return isDue && user.person !== undefined ? (user as UserWithPerson) : undefined
}

/** Retracts the next comments of a person; once none is left, the next posts. Returns how many. */
async function retractNext(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  personId: number,
): Promise<number> {
  const comments = await Comment.query(transaction)
    .where({ authorId: personId })
    .whereExists(Post.query(transaction).whereColumn('posts.id', 'comments.postId').whereNotNull('posts.authorId'))
    .orderBy('id')
    .limit(RETRACTION_BATCH_SIZE)
  for (const comment of comments) {
    const post = await Post.query(transaction).findById(comment.postId).withGraphFetched('author').throwIfNotFound()
    await retractEntity(services, transaction, await newCommentRetraction(transaction, comment, post, personId))
  }
  if (comments.length > 0) return comments.length
  const posts = await Post.query(transaction).where({ authorId: personId }).orderBy('id').limit(RETRACTION_BATCH_SIZE)
  for (const post of posts) await retractEntity(services, transaction, newPostRetraction(post, personId))
  return posts.length
}
