import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Conversation, ConversationMessage } from '../../persistence/models/conversation.js'
import { Person } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { User } from '../../persistence/models/user.js'
import {
  addCaseEvent,
  type CaseSnapshot,
  lockOrInsertCase,
  type OwnReport,
  ownReportsQuery,
} from '../../persistence/moderation/cases.js'
import { type IdPage, type ListPage, readIdPage } from '../../persistence/sql/id-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { enqueueStaffMail } from '../mail/notification-mails.js'
import { enqueueLiveEventsAndMails } from '../notifications/enqueue-live-events.js'
import { getVisiblePerson } from '../people/visible-people.js'
import { requireComment, requirePost } from '../posts/post-access.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { MODERATION_LIMITS } from './limits.js'

interface ReportTarget {
  readonly snapshot: CaseSnapshot
  readonly postId?: number
  readonly commentId?: number
}

/** Reports a post or a comment to the moderators of this pod. The report is not sent to other pods. */
export async function createReport(
  services: Services,
  viewer: Viewer,
  input: { readonly postGuid: string; readonly commentGuid?: string | undefined; readonly reason: string },
): Promise<void> {
  const post = await requirePost(services, viewer, input.postGuid)
  const comment =
    input.commentGuid === undefined ? undefined : await requireComment(services, viewer, post, input.commentGuid)
  const { guid, text, createdAt, authorId } = comment ?? post
  const author = await Person.query(services.db).findById(authorId).throwIfNotFound()
  const photos = comment ? [] : await Photo.query(services.db).where({ postId: post.id }).orderBy(['position', 'id'])
  await addReport(services, viewer, input.reason, {
    ...(comment ? { commentId: comment.id } : { postId: post.id }),
    snapshot: {
      targetType: comment ? 'comment' : 'post',
      targetGuid: guid,
      ...authorOf(author),
      public: post.public,
      text,
      parentGuid: comment ? post.guid : null,
      photoGuids: photos.map((photo) => photo.guid),
      targetCreatedAt: createdAt,
    },
  })
}

/** Reports a person: their profile, or all that they do. */
export async function createPersonReport(
  services: Services,
  viewer: Viewer,
  { personGuid, reason }: { readonly personGuid: string; readonly reason: string },
): Promise<void> {
  const { id, isOwn } = await getVisiblePerson(services, viewer, personGuid)
  if (isOwn) throw new Refusal('own_person', 'You cannot report yourself.')
  const person = await Person.query(services.db).findById(id).withGraphFetched('profile').throwIfNotFound()
  await addReport(services, viewer, reason, {
    snapshot: {
      targetType: 'person',
      targetGuid: person.guid,
      ...authorOf(person),
      public: true,
      text: [person.name, person.profile?.bio ?? ''].filter((text) => text !== '').join('\n\n'),
      parentGuid: null,
      photoGuids: [],
      targetCreatedAt: person.createdAt,
    },
  })
}

/** Reports a message of a conversation of the viewer. Moderators see this message only. */
export async function createMessageReport(
  services: Services,
  viewer: Viewer,
  input: { readonly conversationGuid: string; readonly messageGuid: string; readonly reason: string },
): Promise<void> {
  const conversation = await Conversation.query(services.db)
    .findOne({ guid: input.conversationGuid })
    .whereExists(Conversation.relatedQuery('visibilities').where({ personId: viewer.personId }))
  if (!conversation) throw new Refusal('conversation_not_found', 'You have no conversation with this guid.')
  const message = await ConversationMessage.query(services.db).findOne({
    guid: input.messageGuid,
    conversationId: conversation.id,
  })
  if (!message) throw new Refusal('message_not_found', 'The conversation has no message with this guid.')
  if (message.authorId === viewer.personId) throw new Refusal('own_person', 'You cannot report your own message.')
  const author = await Person.query(services.db).findById(message.authorId).throwIfNotFound()
  await addReport(services, viewer, input.reason, {
    snapshot: {
      targetType: 'message',
      targetGuid: message.guid,
      ...authorOf(author),
      public: false,
      text: message.text,
      parentGuid: conversation.guid,
      photoGuids: [],
      targetCreatedAt: message.createdAt,
    },
  })
}

/** Lists the reports of a user, newest first. */
export async function listOwnReports(
  { db }: Pick<Services, 'db'>,
  { userId }: Viewer,
  page: IdPage,
): Promise<ListPage<OwnReport>> {
  return readIdPage(ownReportsQuery(db, userId), page, 'reports.id')
}

async function addReport(services: Services, { userId }: Viewer, text: string, target: ReportTarget): Promise<void> {
  const reason = text.trim()
  if (reason === '') throw new Refusal('reason_invalid', 'A report needs a reason.')
  const fault = findTextFault(reason)
  if (fault !== undefined) throw new Refusal('reason_invalid', `The reason ${fault}.`)
  const { snapshot, postId = null, commentId = null } = target
  await inRequestTransaction(services, async (transaction) => {
    const createdAt = services.now()
    // The lock of the user keeps simultaneous reports from passing the limit together.
    const user = await User.query(transaction).findById(userId).forNoKeyUpdate().throwIfNotFound()
    const { id: caseId, ...found } = await lockOrInsertCase(transaction, snapshot, {
      at: createdAt,
      canReopen: !user.reportsMuted,
    })
    const report = { userId, caseId, postId, commentId, reason, createdAt }
    const insertedReports = await transaction('reports').insert(report).onConflict().ignore().returning('id')
    if (insertedReports.length === 0) throw new Refusal('already_reported', 'You have already reported this.')
    await requireFewReports(services, transaction, userId)

    const isClosed = found.state === 'resolved' || found.state === 'dismissed'
    const isOnlyCounted = user.reportsMuted || (isClosed && found.ignoreFurther)
    await transaction('moderation_cases')
      .where({ id: caseId })
      .increment('reportCount', 1)
      .increment('reporterCount', user.reportsMuted ? 0 : 1)
    await addCaseEvent(transaction, { caseId, event: 'reported', actorId: userId, at: createdAt })
    if (isOnlyCounted) return
    await enqueueStaffMail(services, transaction, 'someone_reported', snapshot.authorGuid ?? undefined)
    if (isClosed) {
      await transaction('moderation_cases')
        .where({ id: caseId })
        .update({ state: 'open', takenById: null, takenAt: null, closedAt: null, changedAt: createdAt })
      await addCaseEvent(transaction, { caseId, event: 'reopened', actorId: null, at: createdAt })
    }
    await enqueueLiveEventsAndMails(services, transaction, { cases: [caseId] })
  })
}

async function requireFewReports(services: Services, db: Services['db'], userId: number): Promise<void> {
  const since = new Date(services.now().getTime() - MODERATION_LIMITS.reportsPerSeconds * 1_000)
  const latest = await db('reports')
    .where({ userId })
    .where('createdAt', '>', since)
    .limit(MODERATION_LIMITS.maxReports + 1)
    .select('id')
  if (latest.length > MODERATION_LIMITS.maxReports) {
    throw new Refusal('too_many_reports', `At most ${MODERATION_LIMITS.maxReports} reports an hour are accepted.`)
  }
}

function authorOf({ id, guid, address }: Person) {
  return { authorId: id, authorGuid: guid, authorAddress: address }
}
