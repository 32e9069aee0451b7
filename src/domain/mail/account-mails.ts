import type { MailData } from '../../jobs/definitions.js'
import { countMailsOfUser } from '../../persistence/mail/mails.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { issueToken, TOKEN_HOURS, type TokenPurpose } from '../accounts/account-tokens.js'
import type { ComposedMail } from './compose-mail.js'
import { MAIL_LIMITS } from './limits.js'
import { ACCOUNT_MAIL_KINDS, type AccountMailKind } from './mail-kinds.js'
import { type AccountMailFacts, mailTexts } from './texts/mail-texts.js'
import { writeMail } from './write-mail.js'

type AccountMail = MailData & { readonly kind: AccountMailKind }

/** Mails with a token, which end with it, and the page of the token. */
const TOKEN_MAILS: Readonly<
  Partial<Record<AccountMailKind, { readonly purpose: TokenPurpose; readonly path: string }>>
> = {
  password_reset: { purpose: 'password_reset', path: '/users/password/edit' },
  confirm_email: { purpose: 'confirm_email', path: '/users/confirm_email' },
  email_changing: { purpose: 'undo_email', path: '/users/undo_email' },
}

/** Pages to which mails without a token lead. */
const PAGES: Readonly<Partial<Record<AccountMailKind, string>>> = { moderation_notice: '/settings/notices' }

/** Seconds after which a mail is of no use any more; undefined: it is sent as long as attempts remain. */
export function lifetimeOf(kind: AccountMailKind): number | undefined {
  const purpose = TOKEN_MAILS[kind]?.purpose
  if (purpose !== undefined) return TOKEN_HOURS[purpose] * 3_600
  return undefined
}

/** A mail about an open account, to the confirmed address or to the one that is to be confirmed. */
export async function composeAccountMail(pod: Pod, mail: AccountMail): Promise<ComposedMail | undefined> {
  const { kind, userId } = mail
  const user = userId === undefined ? undefined : await User.query(pod.db).findById(userId).withGraphFetched('person')
  if (user?.person === undefined || user.closedAt !== null || user.lockedAt !== null) return undefined
  if (await isSuppressed(pod, user)) return undefined
  const link = TOKEN_MAILS[kind]
  const email = await recipientOf(pod, user, kind)
  if (email === undefined) return undefined
  const token = link && (await issueToken(pod.db, { userId: user.id, purpose: link.purpose, email }))
  return {
    to: email,
    ...writeAccountMail(pod, kind, user.language, {
      facts: { account: user.person.address, address: user.unconfirmedEmail ?? user.email ?? undefined },
      path: link === undefined ? PAGES[kind] : `${link.path}?token=${token}`,
    }),
  }
}

/** The words of an account mail, in the language of its reader. */
export function writeAccountMail(
  { config }: Pick<Pod, 'config'>,
  kind: AccountMailKind,
  language: string,
  { facts, path }: { readonly facts: Omit<AccountMailFacts, 'pod'>; readonly path: string | undefined },
) {
  const texts = mailTexts(language)
  return writeMail({
    text: texts.account[kind]({ pod: config.podName, ...facts }),
    url: path === undefined ? undefined : `${config.url}${path}`,
    footer: texts.accountFooter(config.podName),
  })
}

/** The notice of a change goes to the address that is to be replaced. */
async function recipientOf({ db }: Pick<Pod, 'db'>, user: User, kind: AccountMailKind): Promise<string | undefined> {
  if (kind === 'confirm_email') return user.unconfirmedEmail ?? undefined
  if (kind === 'email_changing') {
    const undo = await db('account_tokens').where({ userId: user.id, purpose: 'undo_email' }).first('email')
    return undo?.email
  }
  return user.emailConfirmedAt === null ? undefined : (user.email ?? undefined)
}

/** A mailbox that seems not to exist gets one mail a day. */
async function isSuppressed({ db }: Pick<Pod, 'db'>, { id, mailState }: User): Promise<boolean> {
  if (mailState !== 'suppressed') return false
  const seconds = MAIL_LIMITS.suppressedHours * 3_600
  return (await countMailsOfUser(db, id, { kinds: ACCOUNT_MAIL_KINDS, seconds, isSent: true })) > 0
}
