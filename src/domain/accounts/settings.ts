import type { Knex } from 'knex'
import { type Factors, findFactors } from '../../persistence/accounts/factors.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Aspect } from '../../persistence/models/aspect.js'
import { type MailState, User } from '../../persistence/models/user.js'
import { type Services, withTransaction } from '../../services/services.js'
import {
  getMailPreferences,
  type MailPreferences,
  type MailPreferencesChange,
  writeMailPreferences,
} from '../mail/mail-settings.js'
import { Refusal } from '../refusals.js'

/** The settings of an account, without its profile. */
export interface AccountSettings {
  readonly language: string
  readonly availableLanguages: readonly string[]
  readonly timeZone: string
  /** The aspect for people who start sharing; null: no following back. */
  readonly followBackAspectId: number | null
  /** Advice to clients for a new post, which no use case applies. */
  readonly defaultPostPublic: boolean
  readonly defaultPostAspectIds: readonly number[]
  readonly email: string | null
  readonly emailConfirmed: boolean
  readonly unconfirmedEmail: string | null
  readonly mailState: MailState
  readonly mail: MailPreferences
  readonly closeAt: Date | null
  readonly secondFactor: Factors
}

/** Undefined fields stay unchanged. */
export interface SettingsChange {
  readonly language?: string | undefined
  readonly timeZone?: string | undefined
  readonly followBackAspectId?: number | null | undefined
  readonly defaultPostPublic?: boolean | undefined
  readonly defaultPostAspectIds?: readonly number[] | undefined
  readonly mail?: MailPreferencesChange | undefined
}

type SettingsDependencies = Pick<Services, 'db' | 'locales'>

export async function getSettings({ db, locales }: SettingsDependencies, userId: number): Promise<AccountSettings> {
  // One after the other: `db` may be a transaction, which has one connection.
  const user = await User.query(db).findById(userId).throwIfNotFound()
  const aspects = await db('aspects').where({ userId, postDefault: true }).orderBy('position').select('id')
  const secondFactor = await findFactors(db, userId)
  const mail = await getMailPreferences({ db }, userId)
  const { language, timeZone, followBackAspectId, defaultPostPublic, email, unconfirmedEmail, mailState, closeAt } =
    user
  const defaultPostAspectIds = aspects.map(({ id }) => Number(id))
  return {
    language,
    timeZone,
    followBackAspectId,
    defaultPostPublic,
    defaultPostAspectIds,
    secondFactor,
    email,
    emailConfirmed: user.emailConfirmedAt !== null,
    unconfirmedEmail,
    mailState,
    mail,
    closeAt,
    availableLanguages: locales.languages,
  }
}

/** Changes the given settings, all of them or none. `check` sees the settings before, with the account locked. */
export async function changeSettings(
  services: Pick<Services, 'db' | 'requestContext' | 'locales'>,
  userId: number,
  change: SettingsChange,
  check: (current: AccountSettings) => void = () => undefined,
): Promise<AccountSettings> {
  return inRequestTransaction(services, (transaction) =>
    writeSettings(withTransaction(services, transaction), userId, change, check),
  )
}

/** Changes the settings in the transaction of the caller. */
export async function writeSettings(
  { db: transaction, locales }: { readonly db: Knex.Transaction } & Pick<Services, 'locales'>,
  userId: number,
  change: SettingsChange,
  check: (current: AccountSettings) => void = () => undefined,
): Promise<AccountSettings> {
  await User.lock(transaction, userId)
  const current = await getSettings({ db: transaction, locales }, userId)
  check(current)
  const { language, timeZone, followBackAspectId } = change
  if (language !== undefined && !locales.languages.includes(language)) {
    throw new Refusal('language_invalid', `The language is one of ${locales.languages.join(', ')}.`)
  }
  if (timeZone !== undefined && !isTimeZone(timeZone)) {
    throw new Refusal('time_zone_invalid', 'The time zone must be a name like Europe/Berlin.')
  }
  if (typeof followBackAspectId === 'number') await requireOwnAspect(transaction, userId, followBackAspectId)
  const { isPublic, aspectIds } = await readPostDefaults(transaction, { userId, current, change })
  const columns = {
    ...(language !== undefined && { language }),
    ...(timeZone !== undefined && { timeZone }),
    ...(followBackAspectId !== undefined && { followBackAspectId }),
    defaultPostPublic: isPublic,
  }
  await User.query(transaction).findById(userId).patch(columns)
  await transaction('aspects')
    .where({ userId })
    .update({ postDefault: transaction.raw('id = any(?::bigint[])', [[...aspectIds]]) })
  if (change.mail !== undefined) await writeMailPreferences(transaction, userId, change.mail)
  return getSettings({ db: transaction, locales }, userId)
}

/** A public post has no aspects: turning `public` on clears them. */
async function readPostDefaults(
  transaction: Knex.Transaction,
  request: { readonly userId: number; readonly current: AccountSettings; readonly change: SettingsChange },
): Promise<{ readonly isPublic: boolean; readonly aspectIds: readonly number[] }> {
  const { userId, current, change } = request
  const isPublic = change.defaultPostPublic ?? current.defaultPostPublic
  const aspectIds = [...new Set(change.defaultPostAspectIds ?? (isPublic ? [] : current.defaultPostAspectIds))]
  if (isPublic && aspectIds.length > 0) throw new Refusal('aspects_invalid', 'A public post has no aspects.')
  const ownAspects = await Aspect.query(transaction)
    .where({ userId })
    .whereRaw('id = any(?::bigint[])', [aspectIds])
    .select('id')
  if (ownAspects.length < aspectIds.length) throw new Refusal('aspects_invalid', 'One of the aspects is not yours.')
  return { isPublic, aspectIds }
}

async function requireOwnAspect(transaction: Knex.Transaction, userId: number, id: number): Promise<void> {
  if (await Aspect.query(transaction).findOne({ userId, id })) return
  throw new Refusal('aspect_not_found', 'You have no aspect with this id.')
}

/** Offsets such as `+01:00`, which newer versions of `Intl` accept, have no daylight saving time. */
function isTimeZone(text: string): boolean {
  if (!/^[A-Za-z][\w+\-/]{0,63}$/.test(text)) return false
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }) !== undefined
  } catch {
    return false
  }
}
