import type { AccountMailKind, NoticeKind, StaffNoticeKind } from '../mail-kinds.js'
import { ENGLISH } from './en.js'

/** The words of a mail, without the parts that all mails have. */
export interface MailText {
  readonly subject: string
  readonly paragraphs: readonly string[]
  /** The name of the link. */
  readonly action?: string
}

/** What mails about an account say. */
export interface AccountMailFacts {
  readonly pod: string
  /** The network id of the account. */
  readonly account: string
  /** The new address of the account, where the mail is about it. */
  readonly address?: string | undefined
  /** What a moderator wants to say. */
  readonly note?: string | undefined
  readonly count?: number | undefined
  /** The day on which the account is closed, in the language of its reader. */
  readonly day?: string | undefined
}

/** What a notice says: nothing of a private text. */
export interface NoticeFacts {
  readonly pod: string
  /** The person who caused it; undefined: the event has none. */
  readonly name: string
  /** How many other people caused it too. */
  readonly others: number
  /** The beginning of a public text. */
  readonly excerpt?: string | undefined
}

export interface MailTexts {
  readonly account: Readonly<Record<AccountMailKind, (facts: AccountMailFacts) => MailText>>
  readonly notice: Readonly<Record<NoticeKind, (facts: NoticeFacts) => MailText>>
  readonly staff: Readonly<
    Record<StaffNoticeKind, (facts: { readonly pod: string; readonly count: number }) => MailText>
  >
  /** One line of a digest. */
  readonly digestLine: Readonly<Record<NoticeKind, (facts: NoticeFacts) => string>>
  readonly digest: (facts: { readonly pod: string; readonly count: number; readonly more: number }) => {
    readonly subject: string
    readonly intro: string
    readonly more: string
    readonly action: string
  }
  /** The end of an account mail, and that of a notice. */
  readonly accountFooter: (pod: string) => string
  readonly noticeFooter: (pod: string) => string
  readonly unsubscribe: string
}

/** By language. A catalogue that is added here must be complete. */
const CATALOGUES: Readonly<Record<string, MailTexts>> = { en: ENGLISH }

export function mailTexts(language: string): MailTexts {
  return CATALOGUES[language] ?? ENGLISH
}
