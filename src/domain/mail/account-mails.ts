import type { MailData } from '../../jobs/definitions.js'
import { findFactors } from '../../persistence/accounts/factors.js'
import { ACCOUNT_MAIL_KINDS, type AccountMailKind } from '../../persistence/mail/mail-kinds.js'
import { countMailsOfUser } from '../../persistence/mail/mails.js'
import { User } from '../../persistence/models/user.js'
import { findNewestAddresses } from '../../persistence/people/moved-people.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import { issueToken, issueUndoToken, TOKEN_HOURS, type TokenPurpose } from '../accounts/account-tokens.js'
import { INACTIVITY_LIMITS } from '../accounts/limits.js'
import type { ComposedMail } from './compose-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { type AccountMailData, accountMailText } from './mail-texts.js'
import { mailboxMac } from './mailboxes.js'
import { writeMail } from './write-mail.js'

type AccountMail = MailData & { readonly kind: AccountMailKind }

/** Mails with a token, which end with it, and the page of the token. */
const TOKEN_MAILS: Readonly<
  Partial<Record<AccountMailKind, { readonly purpose: TokenPurpose | 'undo_email'; readonly path: string }>>
> = {
  password_reset: { purpose: 'password_reset', path: '/users/password/edit' },
  confirm_email: { purpose: 'confirm_email', path: '/users/confirm_email' },
  email_changing: { purpose: 'undo_email', path: '/users/undo_email' },
}

/** Pages to which mails without a token lead. */
const PAGES: Readonly<Partial<Record<AccountMailKind, string>>> = {
  moderation_notice: '/settings/notices',
  account_closing: '/settings/close',
  account_unused: '/settings',
  account_unused_closing: '/settings',
  archive_ready: '/settings/export',
  sign_ups_unattended: '/admin/sign-ups',
}

/** Mails that name a day; without it their cause has ended. */
const MAILS_OF_A_DAY: ReadonlySet<AccountMailKind> = new Set([
  'account_closing',
  'account_unused',
  'account_unused_closing',
])

/** Seconds after which a mail is useless; undefined: it is sent as long as attempts remain. */
export function linkLifetime(kind: AccountMailKind): number | undefined {
  const purpose = TOKEN_MAILS[kind]?.purpose
  if (purpose !== undefined) return TOKEN_HOURS[purpose] * 3_600
  return undefined
}

/** A mail about an open account, or one that has moved, to the confirmed address or to the one that is to be confirmed. */
export async function composeAccountMail(services: Services, mail: AccountMail): Promise<ComposedMail | undefined> {
  const { kind, userId } = mail
  const user =
    userId === undefined ? undefined : await User.query(services.db).findById(userId).withGraphFetched('person')
  if (user?.person === undefined || user.closedAt !== null) return undefined
  if (user.lockedAt !== null && kind !== 'account_moved') return undefined
  if (await isSuppressed(services, user)) return undefined
  const day = dayOf(services, kind, user)
  if (day === undefined && MAILS_OF_A_DAY.has(kind)) return undefined
  const movedTo = kind === 'account_moved' ? await findNewAddress(services, user.person.address) : undefined
  if (movedTo === undefined && kind === 'account_moved') return undefined
  const link = TOKEN_MAILS[kind]
  const recipient = await findRecipient(services, user, mail)
  if (recipient === undefined) return undefined
  const { email, token } = recipient
  return {
    to: email,
    ...writeAccountMail(services, kind, user.language, {
      data: {
        account: user.person.address,
        address: movedTo ?? user.unconfirmedEmail ?? user.email ?? undefined,
        count: kind === 'recovery_code_used' ? (await findFactors(services.db, user.id)).recoveryCodesLeft : undefined,
        day,
      },
      path: link === undefined ? PAGES[kind] : `${link.path}?token=${token}`,
    }),
  }
}

async function findNewAddress({ db }: Pick<Services, 'db'>, oldAddress: string): Promise<string | undefined> {
  return (await findNewestAddresses(db, [oldAddress])).get(oldAddress)
}

/** The day of the end of the account; in the warning before, the day on which its closing begins. */
function dayOf({ locales }: Pick<Services, 'locales'>, kind: AccountMailKind, user: User): string | undefined {
  const { closeAt, inactiveWarnedAt, activeAt, timeZone } = user
  const isUsedAgain = activeAt !== null && inactiveWarnedAt !== null && activeAt > inactiveWarnedAt
  const warnedUntil = inactiveWarnedAt === null || isUsedAgain ? null : daysAfter(inactiveWarnedAt)
  const day = kind === 'account_unused' ? warnedUntil : closeAt
  const { language } = locales.translator(user.language)
  return day === null ? undefined : new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone }).format(day)
}

function daysAfter(warnedAt: Date): Date {
  return new Date(warnedAt.getTime() + INACTIVITY_LIMITS.warnedDays * DAY_MS)
}

/** The words of an account mail, in the language of its reader. */
export function writeAccountMail(
  { config, locales }: Pick<Services, 'config' | 'locales'>,
  kind: AccountMailKind,
  language: string,
  { data, path }: { readonly data: Omit<AccountMailData, 'pod'>; readonly path: string | undefined },
) {
  const t = locales.translator(language)
  return writeMail({
    text: accountMailText(t, kind, { pod: config.podName, ...data }),
    url: path === undefined ? undefined : `${config.url}${path}`,
    footer: t('mail.account_footer', { pod: config.podName }),
  })
}

/** The address of a mail, with the token of its link. The mail about a change goes to the old address. */
async function findRecipient(
  services: Pick<Services, 'db' | 'secrets'>,
  user: User,
  { kind, mailId, undoId }: AccountMail,
): Promise<{ readonly email: string; readonly token?: string } | undefined> {
  const userId = user.id
  const purpose = TOKEN_MAILS[kind]?.purpose
  if (purpose === 'undo_email') return issueUndoToken(services.db, { userId, undoId })
  const confirmedEmail = user.emailConfirmedAt === null ? null : user.email
  const email = purpose === 'confirm_email' ? user.unconfirmedEmail : confirmedEmail
  if (email === null) return undefined
  if (purpose === undefined) return { email }
  if (purpose === 'confirm_email' && !(await isForMailbox(services, mailId, email))) return undefined
  return { email, token: await issueToken(services.db, { userId, purpose, email }) }
}

/** A mail that was counted for another mailbox is not sent to this one: the address has been replaced again. */
async function isForMailbox(
  { db, secrets }: Pick<Services, 'db' | 'secrets'>,
  id: number,
  email: string,
): Promise<boolean> {
  const row = await db('mails').where({ id }).first('mailbox')
  return row?.mailbox == null || mailboxMac({ secrets }, email).equals(row.mailbox)
}

/** A mailbox that seems not to exist gets one mail a day. */
async function isSuppressed({ db }: Pick<Services, 'db'>, { id, mailState }: User): Promise<boolean> {
  if (mailState !== 'suppressed') return false
  const seconds = MAIL_LIMITS.suppressedHours * 3_600
  return (await countMailsOfUser(db, id, { kinds: ACCOUNT_MAIL_KINDS, seconds, isSent: true })) > 0
}
