import { ENGLISH } from '../../languages/en/catalogue.js'
import type { MessageId, Translate } from '../../languages/translate.js'
import type { AccountMailKind, NotificationMailKind, StaffMailKind } from '../../persistence/mail/mail-kinds.js'

/** The words of a mail, without the parts that all mails have. */
export interface MailText {
  readonly subject: string
  readonly paragraphs: readonly string[]
  /** The name of the link. */
  readonly action?: string | undefined
}

/** The texts of mails about an account. */
export interface AccountMailData {
  readonly pod: string
  /** The network id of the account. */
  readonly account: string
  /** The new e-mail address or network ID of the account, where the mail is about it. */
  readonly address?: string | undefined
  /** The text that a moderator has written. */
  readonly note?: string | undefined
  readonly count?: number | undefined
  /** A date, written in the language of the mail. */
  readonly day?: string | undefined
}

/** The data of a notification mail, without private texts. */
export interface NotificationMailData {
  readonly pod: string
  /** The person who caused it; undefined: the event has none. */
  readonly name: string
  /** How many other people caused it too. */
  readonly others: number
  /** The beginning of a public text. */
  readonly excerpt?: string | undefined
}

type MailMessageId = Extract<MessageId, `mail.${string}`>

export function accountMailText(t: Translate, kind: AccountMailKind, data: AccountMailData): MailText {
  const { pod, account, address = '', note, count = 0, day = '' } = data
  const { paragraphs, ...text } = mailText(t, kind, { pod, account, address, count, day })
  return { ...text, paragraphs: note === undefined ? paragraphs : [...paragraphs, note] }
}

export function staffMailText(
  t: Translate,
  kind: StaffMailKind,
  data: { readonly pod: string; readonly count: number },
): MailText {
  return mailText(t, kind, data)
}

export function notificationMailText(t: Translate, kind: NotificationMailKind, data: NotificationMailData): MailText {
  const { name, others, excerpt } = data
  return {
    subject: t(`mail.notice.${kind}`, { name, others }),
    paragraphs: [notificationLine(t, kind, data), ...(excerpt === undefined ? [] : [excerpt])],
    action: t('mail.notice.action'),
  }
}

/** A notification as a sentence: one line of a digest. */
export function notificationLine(
  t: Translate,
  kind: NotificationMailKind,
  { name, others }: NotificationMailData,
): string {
  return t('mail.notice.sentence', { sentence: t(`mail.notice.${kind}`, { name, others }) })
}

/** Subject, paragraphs and link of one kind. Messages use some of the values. */
function mailText(
  t: Translate,
  kind: AccountMailKind | StaffMailKind,
  values: Readonly<Record<string, string | number>>,
): MailText {
  const say = (id: MailMessageId) => String(t.message(id).format(values))
  const action = `mail.${kind}.action`
  return {
    subject: say(`mail.${kind}.subject`),
    paragraphs: say(`mail.${kind}.text`).split('\n\n'),
    action: isMailMessage(action) ? say(action) : undefined,
  }
}

function isMailMessage(id: string): id is MailMessageId {
  return Object.hasOwn(ENGLISH, id)
}
