import type { Knex } from 'knex'
import type { MailData } from '../../jobs/definitions.js'
import type { JobContext } from '../../jobs/outbox/outbox.js'
import { countUndecidedSignUps } from '../../persistence/accounts/pending-sign-ups.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import {
  isNoticeKind,
  type MailKind,
  NOTICE_DELIVERY,
  type NoticeKind,
  type StaffNoticeKind,
} from '../../persistence/mail/mail-kinds.js'
import { countMailsOfUser } from '../../persistence/mail/mails.js'
import {
  claimDigests,
  type DueNotice,
  findDigest,
  findDueNotices,
  findNotice,
  findStaffForNotice,
  listTimeZones,
  type NoticeRow,
  recordNoticeMails,
  takeDueConversations,
} from '../../persistence/mail/notices.js'
import { User } from '../../persistence/models/user.js'
import { countWaitingCases } from '../../persistence/moderation/cases.js'
import type { Pod } from '../../pod/pod.js'
import type { ComposedMail } from './compose-mail.js'
import { enqueueMails } from './enqueue-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { type NoticeFacts, noticeLine, noticeText, staffNoticeText } from './mail-texts.js'
import { unsubscribeUrl } from './unsubscribe.js'
import { mailExcerpt, mailName, writeMail } from './write-mail.js'

/** New rows that may cause a mail each. */
export interface NoticeCauses {
  readonly notifications?: readonly number[]
  readonly messages?: readonly number[]
}

const DEFAULTS = {
  immediate: Object.entries(NOTICE_DELIVERY).flatMap(([kind, delivery]) => (delivery === 'immediate' ? [kind] : [])),
  daily: Object.entries(NOTICE_DELIVERY).flatMap(([kind, delivery]) => (delivery === 'daily' ? [kind] : [])),
}

/** Two minutes after their cause: enqueues the mails that are wanted at once and not read yet. What is beyond the limits is in the digest. */
export async function enqueueNotices(pod: Pod, work: JobContext & { readonly data: NoticeCauses }): Promise<void> {
  const { notifications = [], messages = [] } = work.data
  await inTransaction(pod, async (transaction) => {
    await work.finish(transaction)
    const due = await withinLimits(transaction, [
      ...(await findDueNotices(transaction, notifications, DEFAULTS)),
      ...(await takeDueConversations(transaction, messages)),
    ])
    await recordNoticeMails(
      transaction,
      due.flatMap(({ notificationId }) => notificationId ?? []),
    )
    await enqueueMails(pod, transaction, due)
  })
}

async function withinLimits(db: Knex, due: readonly DueNotice[]): Promise<readonly DueNotice[]> {
  const kinds = Object.keys(NOTICE_DELIVERY) as NoticeKind[] // the keys of the table
  const room = new Map<number, number>()
  for (const userId of new Set(due.map((notice) => notice.userId))) {
    const inHour = await countMailsOfUser(db, userId, { kinds, seconds: 3_600 })
    const inDay = await countMailsOfUser(db, userId, { kinds, seconds: 86_400 })
    room.set(userId, Math.min(MAIL_LIMITS.noticesPerHour - inHour, MAIL_LIMITS.noticesPerDay - inDay))
  }
  return due.filter(({ userId }) => {
    const left = room.get(userId) ?? 0
    room.set(userId, left - 1)
    return left > 0
  })
}

/** Enqueues the digests that are due by the clocks of their users. Each user has one for a local date, in all processes. */
export async function enqueueDigests(pod: Pod): Promise<number> {
  if (pod.config.mail === undefined) return 0
  let digests = 0
  for (const timeZone of await listTimeZones(pod.db)) {
    digests += await inTransaction(pod, async (transaction) => {
      const users = await claimDigests(transaction, { timeZone, ...localTime(pod.now(), timeZone), defaults: DEFAULTS })
      await enqueueMails(
        pod,
        transaction,
        users.map((userId) => ({ kind: 'digest', userId })),
      )
      return users.length
    })
  }
  return digests
}

/** The local date as YYYY-MM-DD, and the hour. */
function localTime(now: Date, timeZone: string): { readonly date: string; readonly hour: number } {
  const format = new Intl.DateTimeFormat('en-CA', {
    ...{ timeZone, year: 'numeric', month: '2-digit', day: '2-digit', hour: '2-digit', hourCycle: 'h23' },
  } as Intl.DateTimeFormatOptions)
  const parts = Object.fromEntries(format.formatToParts(now).map(({ type, value }) => [type, value]))
  return { date: `${parts['year']}-${parts['month']}-${parts['day']}`, hour: Number(parts['hour']) }
}

/** Enqueues a mail to moderators and admins; several in ten minutes become one, which counts. */
export async function enqueueStaffNotice(
  pod: Pick<Pod, 'jobs' | 'config'>,
  transaction: Knex.Transaction,
  kind: StaffNoticeKind,
  exceptPersonGuid?: string,
): Promise<void> {
  if (pod.config.mail === undefined) return
  const staff = await findStaffForNotice(transaction, kind, exceptPersonGuid)
  const pause = MAIL_LIMITS.reportMailMinutes * 60
  for (const { userId, secondsSinceLast } of staff) {
    const wait = secondsSinceLast === null ? 0 : pause - secondsSinceLast
    await enqueueMails(pod, transaction, [{ kind, userId }], wait > 0 ? { dueInSeconds: wait } : {})
  }
}

/** A notice about one notification or conversation, a digest, or a notice for staff. Undefined: it is not wanted any more. */
export async function composeNotice(pod: Pod, mail: MailData): Promise<ComposedMail | undefined> {
  const user = mail.userId === undefined ? undefined : await User.query(pod.db).findById(mail.userId)
  if (user?.email == null || user.emailConfirmedAt === null || user.mailState === 'suppressed') return undefined
  if (user.closedAt !== null || user.lockedAt !== null || !user.mailEnabled) return undefined
  const to = { ...user, email: user.email }
  const { kind } = mail
  if (kind === 'digest') return composeDigest(pod, to, mail.mailId)
  if (kind === 'someone_reported' || kind === 'sign_up_waiting') return composeStaffNotice(pod, to, kind)
  if (mail.conversationId !== undefined) return composeConversation(pod, to, mail.conversationId)
  const row = mail.notificationId === undefined ? undefined : await findNotice(pod.db, mail.notificationId)
  if (row === undefined || !isNoticeKind(row.kind)) return undefined
  const { url } = pod.config
  const page =
    row.kind === 'started_sharing' ? `/people/${row.personGuid}` : row.isPublic ? `/posts/${row.postGuid}` : '/'
  return {
    ...write(pod, to, row.kind, factsOf(pod, row), `${url}${page}`),
    inReplyTo: row.postGuid === null ? undefined : `<${row.postGuid}@${new URL(url).hostname}>`,
  }
}

type NoticeRecipient = Pick<User, 'id' | 'personId' | 'language'> & { readonly email: string }

function write(pod: Pod, user: NoticeRecipient, kind: NoticeKind, facts: NoticeFacts, url: string): ComposedMail {
  return finish(pod, user, kind, { text: noticeText(pod.locales.translator(user.language), kind, facts), url })
}

function finish(
  pod: Pod,
  user: NoticeRecipient,
  kind: MailKind,
  parts: Pick<Parameters<typeof writeMail>[0], 'text' | 'lines' | 'url'>,
): ComposedMail {
  const t = pod.locales.translator(user.language)
  const link = unsubscribeUrl(pod, user, kind)
  const written = writeMail({
    ...parts,
    footer: t('mail.notice_footer', { pod: pod.config.podName }),
    unsubscribe: link === undefined ? undefined : { label: t('mail.unsubscribe'), url: link },
  })
  return { ...written, to: user.email, unsubscribeUrl: link }
}

function factsOf({ config }: Pick<Pod, 'config'>, { name, address, actors, isPublic, text }: NoticeRow): NoticeFacts {
  return {
    pod: config.podName,
    name: mailName(name) || address,
    others: actors - 1,
    excerpt: isPublic && text !== null ? mailExcerpt(text) : undefined,
  }
}

/** Neither the subject nor a text of the conversation is in the mail. It names nobody whom the user blocks. */
async function composeConversation(
  pod: Pod,
  user: NoticeRecipient,
  conversationId: number,
): Promise<ComposedMail | undefined> {
  const { rows } = await pod.db.raw(
    `select coalesce(nullif(people.name, ''), people.address) as name, people.address
     from messages join people on people.id = messages.author_id
     join users on users.id = :userId and users.person_id <> messages.author_id
     join conversation_visibilities as visible
       on visible.conversation_id = messages.conversation_id and visible.person_id = users.person_id and visible.unread > 0
     where messages.conversation_id = :conversationId
       and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = messages.author_id)
       and people.restriction is distinct from 'block'
     order by messages.id desc limit 1`,
    { userId: user.id, conversationId },
  )
  if (rows[0] === undefined) return undefined
  const facts = { pod: pod.config.podName, name: mailName(rows[0].name) || rows[0].address, others: 0 }
  return write(pod, user, 'private_message', facts, `${pod.config.url}/`)
}

async function composeDigest(pod: Pod, user: NoticeRecipient, mailId: number): Promise<ComposedMail | undefined> {
  const { digestLines: limit } = MAIL_LIMITS
  const { rows, count } = await findDigest(pod.db, { userId: user.id, mailId, defaults: DEFAULTS, limit })
  if (count === 0) return undefined
  const t = pod.locales.translator(user.language)
  const more = count - rows.length
  const lines = rows.flatMap((row) => (isNoticeKind(row.kind) ? [noticeLine(t, row.kind, factsOf(pod, row))] : []))
  return finish(pod, user, 'digest', {
    text: {
      subject: t('mail.digest.subject', { pod: pod.config.podName, count }),
      paragraphs: [t('mail.digest.text')],
      action: t('mail.digest.action'),
    },
    lines: more === 0 ? lines : [...lines, t('mail.digest.more', { count: more })],
    url: `${pod.config.url}/`,
  })
}

async function composeStaffNotice(
  pod: Pod,
  user: NoticeRecipient,
  kind: StaffNoticeKind,
): Promise<ComposedMail | undefined> {
  const count =
    kind === 'someone_reported'
      ? (await countWaitingCases(pod.db, user.personId)).open
      : await countUndecidedSignUps(pod.db)
  if (count === 0) return undefined
  const text = staffNoticeText(pod.locales.translator(user.language), kind, { pod: pod.config.podName, count })
  return finish(pod, user, kind, { text, url: `${pod.config.url}/admin` })
}
