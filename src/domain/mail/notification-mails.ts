import type { Knex } from 'knex'
import type { MailData } from '../../jobs/definitions.js'
import type { JobContext } from '../../jobs/outbox/load-job.js'
import { countUndecidedSignUps } from '../../persistence/accounts/pending-sign-ups.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  isNotificationMailKind,
  type MailKind,
  NOTIFICATION_MAIL_DELIVERY,
  type NotificationMailKind,
  type StaffMailKind,
} from '../../persistence/mail/mail-kinds.js'
import { countMailsOfUser } from '../../persistence/mail/mails.js'
import {
  claimDigests,
  type DueNotificationMail,
  findAuthorOfUnread,
  findDigest,
  findDueNotificationMails,
  findNotificationMail,
  findStaffForMail,
  listTimeZones,
  lockStaffMails,
  type NotificationMailRow,
  recordNotificationMails,
  takeDueConversations,
} from '../../persistence/mail/notification-mails.js'
import { User } from '../../persistence/models/user.js'
import { countOpenCasesByType } from '../../persistence/moderation/cases.js'
import type { Services } from '../../services/services.js'
import type { ComposedMail } from './compose-mail.js'
import { enqueueMails } from './enqueue-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { type NotificationMailData, notificationLine, notificationMailText, staffMailText } from './mail-texts.js'
import { unsubscribeUrl } from './unsubscribe.js'
import { mailExcerpt, mailName, writeMail } from './write-mail.js'

/** New rows that may cause a mail each. */
export interface NotificationMailCauses {
  readonly notifications?: readonly number[]
  readonly messages?: readonly number[]
}

const DEFAULTS = {
  immediate: Object.entries(NOTIFICATION_MAIL_DELIVERY).flatMap(([kind, delivery]) =>
    delivery === 'immediate' ? [kind] : [],
  ),
  daily: Object.entries(NOTIFICATION_MAIL_DELIVERY).flatMap(([kind, delivery]) => (delivery === 'daily' ? [kind] : [])),
}

/**
 * Runs two minutes after the causes. Enqueues the immediate mails about what is still unread. Mails beyond the hourly or daily limit of a
 * user are left to the digest.
 */
export async function enqueueNotificationMails(
  services: Services,
  work: JobContext & { readonly data: NotificationMailCauses },
): Promise<void> {
  const { notifications = [], messages = [] } = work.data
  await inRequestTransaction(services, async (transaction) => {
    await work.finish(transaction)
    const due = await withinLimits(transaction, [
      ...(await findDueNotificationMails(transaction, notifications, DEFAULTS)),
      ...(await takeDueConversations(transaction, messages)),
    ])
    await recordNotificationMails(
      transaction,
      due.flatMap(({ notificationId }) => notificationId ?? []),
    )
    await enqueueMails(services, transaction, due)
  })
}

async function withinLimits(db: Knex, due: readonly DueNotificationMail[]): Promise<readonly DueNotificationMail[]> {
  const kinds = Object.keys(NOTIFICATION_MAIL_DELIVERY) as NotificationMailKind[] // the keys of the table
  const remainingByUser = new Map<number, number>()
  for (const userId of new Set(due.map((mail) => mail.userId))) {
    const inHour = await countMailsOfUser(db, userId, { kinds, seconds: 3_600 })
    const inDay = await countMailsOfUser(db, userId, { kinds, seconds: 86_400 })
    remainingByUser.set(
      userId,
      Math.min(MAIL_LIMITS.notificationMailsPerHour - inHour, MAIL_LIMITS.notificationMailsPerDay - inDay),
    )
  }
  return due.filter(({ userId }) => {
    const remainingMails = remainingByUser.get(userId) ?? 0
    remainingByUser.set(userId, remainingMails - 1)
    return remainingMails > 0
  })
}

/** Enqueues the digests that are due by the clocks of their users. Each user has one for a local date, in all processes. */
export async function enqueueDigests(services: Services): Promise<number> {
  if (services.config.mail === undefined) return 0
  let digests = 0
  for (const timeZone of await listTimeZones(services.db)) {
    digests += await inRequestTransaction(services, async (transaction) => {
      const users = await claimDigests(transaction, {
        timeZone,
        ...localTime(services.now(), timeZone),
        defaults: DEFAULTS,
      })
      await enqueueMails(
        services,
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
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    hourCycle: 'h23',
  } as Intl.DateTimeFormatOptions)
  const parts = Object.fromEntries(format.formatToParts(now).map(({ type, value }) => [type, value]))
  return { date: `${parts['year']}-${parts['month']}-${parts['day']}`, hour: Number(parts['hour']) }
}

/** Enqueues a mail to moderators and admins; several in ten minutes become one, which counts. */
export async function enqueueStaffMail(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  kind: StaffMailKind,
  exceptPersonGuid?: string,
): Promise<void> {
  if (services.config.mail === undefined) return
  await lockStaffMails(transaction)
  const staff = await findStaffForMail(transaction, kind, exceptPersonGuid)
  const pause = MAIL_LIMITS.reportMailMinutes * 60
  for (const { userId, secondsSinceLast } of staff) {
    const wait = secondsSinceLast === null ? 0 : pause - secondsSinceLast
    await enqueueMails(services, transaction, [{ kind, userId }], wait > 0 ? { dueInSeconds: wait } : {})
  }
}

/** A mail about one notification or conversation, a digest, or a mail for staff. Undefined: the user no longer wants it. */
export async function composeNotificationMail(services: Services, mail: MailData): Promise<ComposedMail | undefined> {
  const user = mail.userId === undefined ? undefined : await User.query(services.db).findById(mail.userId)
  if (user?.email == null || user.emailConfirmedAt === null || user.mailState === 'suppressed') return undefined
  if (user.closedAt !== null || user.lockedAt !== null || !user.mailEnabled) return undefined
  const to = { ...user, email: user.email }
  const { kind } = mail
  if (kind === 'digest') return composeDigest(services, to, mail.mailId)
  if (kind === 'someone_reported' || kind === 'sign_up_waiting') return composeStaffMail(services, to, kind)
  if (mail.conversationId !== undefined) return composeConversation(services, to, mail.conversationId)
  const row =
    mail.notificationId === undefined ? undefined : await findNotificationMail(services.db, mail.notificationId)
  if (row === undefined || !isNotificationMailKind(row.kind)) return undefined
  const { url } = services.config
  const page =
    row.kind === 'started_sharing' ? `/people/${row.personGuid}` : row.isPublic ? `/posts/${row.postGuid}` : '/'
  return {
    ...writeNotificationMail(services, to, { kind: row.kind, facts: factsOf(services, row), url: `${url}${page}` }),
    inReplyTo: row.postGuid === null ? undefined : `<${row.postGuid}@${new URL(url).hostname}>`,
  }
}

type NotificationMailRecipient = Pick<User, 'id' | 'personId' | 'language'> & { readonly email: string }

interface NotificationMail {
  readonly kind: NotificationMailKind
  readonly facts: NotificationMailData
  readonly url: string
}

function writeNotificationMail(
  services: Services,
  user: NotificationMailRecipient,
  { kind, facts, url }: NotificationMail,
): ComposedMail {
  return writeMailToUser(services, user, kind, {
    text: notificationMailText(services.locales.translator(user.language), kind, facts),
    url,
  })
}

/** Adds the footer and the link to unsubscribe. */
function writeMailToUser(
  services: Services,
  user: NotificationMailRecipient,
  kind: MailKind,
  parts: Pick<Parameters<typeof writeMail>[0], 'text' | 'lines' | 'url'>,
): ComposedMail {
  const t = services.locales.translator(user.language)
  const link = unsubscribeUrl(services, user, kind)
  const content = writeMail({
    ...parts,
    footer: t('mail.notice_footer', { pod: services.config.podName }),
    unsubscribe: link === undefined ? undefined : { label: t('mail.unsubscribe'), url: link },
  })
  return { ...content, to: user.email, unsubscribeUrl: link }
}

function factsOf(
  { config }: Pick<Services, 'config'>,
  { name, address, actors, isPublic, text }: NotificationMailRow,
): NotificationMailData {
  return {
    pod: config.podName,
    name: mailName(name) || address,
    others: actors - 1,
    excerpt: isPublic && text !== null ? mailExcerpt(text) : undefined,
  }
}

/** Neither the subject nor a text of the conversation is in the mail. It does not name people whom the user blocks. */
async function composeConversation(
  services: Services,
  user: NotificationMailRecipient,
  conversationId: number,
): Promise<ComposedMail | undefined> {
  const author = await findAuthorOfUnread(services.db, { userId: user.id, conversationId })
  if (author === undefined) return undefined
  const facts = { pod: services.config.podName, name: mailName(author.name) || author.address, others: 0 }
  return writeNotificationMail(services, user, { kind: 'private_message', facts, url: `${services.config.url}/` })
}

async function composeDigest(
  services: Services,
  user: NotificationMailRecipient,
  mailId: number,
): Promise<ComposedMail | undefined> {
  const { digestLines: limit } = MAIL_LIMITS
  const { rows, count } = await findDigest(services.db, { userId: user.id, mailId, defaults: DEFAULTS, limit })
  if (count === 0) return undefined
  const t = services.locales.translator(user.language)
  const more = count - rows.length
  const lines = rows.flatMap((row) =>
    isNotificationMailKind(row.kind) ? [notificationLine(t, row.kind, factsOf(services, row))] : [],
  )
  return writeMailToUser(services, user, 'digest', {
    text: {
      subject: t('mail.digest.subject', { pod: services.config.podName, count }),
      paragraphs: [t('mail.digest.text')],
      action: t('mail.digest.action'),
    },
    lines: more === 0 ? lines : [...lines, t('mail.digest.more', { count: more })],
    url: `${services.config.url}/`,
  })
}

async function composeStaffMail(
  services: Services,
  user: NotificationMailRecipient,
  kind: StaffMailKind,
): Promise<ComposedMail | undefined> {
  const t = services.locales.translator(user.language)
  const isAboutReports = kind === 'someone_reported'
  const cases = isAboutReports ? await countOpenCasesByType(services.db, user.personId) : []
  const count = isAboutReports
    ? cases.reduce((sum, { count: ofType }) => sum + ofType, 0)
    : await countUndecidedSignUps(services.db)
  if (count === 0) return undefined
  return writeMailToUser(services, user, kind, {
    text: staffMailText(t, kind, { pod: services.config.podName, count }),
    lines: cases.map(({ type, count: ofType }) => t(`mail.reported.${type}`, { count: ofType })),
    url: `${services.config.url}/admin/${isAboutReports ? 'reports' : 'sign-ups'}`,
  })
}
