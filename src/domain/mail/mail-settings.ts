import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  DELIVERIES,
  isPreferenceKind,
  type MailDelivery,
  PREFERENCE_DEFAULTS,
} from '../../persistence/mail/mail-kinds.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'

export interface MailPreferences {
  readonly enabled: boolean
  readonly digestHour: number
  /** The delivery of each kind. */
  readonly kinds: Readonly<Record<string, MailDelivery>>
}

export interface MailPreferencesChange {
  readonly enabled?: boolean
  readonly digestHour?: number
  /** Kinds that are not named stay as they are. */
  readonly kinds?: Readonly<Record<string, string>>
}

export async function getMailPreferences({ db }: Pick<Services, 'db'>, userId: number): Promise<MailPreferences> {
  const user = await User.query(db).findById(userId).throwIfNotFound()
  const rows = await db('mail_preferences').where({ userId }).select('kind', 'delivery')
  const deliveryOfKind = Object.fromEntries(rows.map(({ kind, delivery }) => [kind, delivery]))
  return {
    enabled: user.mailEnabled,
    digestHour: user.digestHour,
    kinds: { ...PREFERENCE_DEFAULTS, ...deliveryOfKind },
  }
}

/** Changes the given preferences, all of them or none. */
export async function changeMailPreferences(
  services: Pick<Services, 'db' | 'requestContext'>,
  userId: number,
  change: MailPreferencesChange,
): Promise<void> {
  await inRequestTransaction(services, (transaction) => writeMailPreferences(transaction, userId, change))
}

/** Changes mail preferences in the transaction of the caller. A refusal writes nothing. */
export async function writeMailPreferences(
  transaction: Knex.Transaction,
  userId: number,
  { enabled, digestHour, kinds = {} }: MailPreferencesChange,
): Promise<void> {
  if (digestHour !== undefined && !(Number.isInteger(digestHour) && digestHour >= 0 && digestHour <= 23)) {
    throw new Refusal('digest_hour_invalid', 'The hour must be a number from 0 to 23.')
  }
  const rows = Object.entries(kinds).map(([name, delivery]) => ({ userId, kind: readKind(name), delivery }))
  const invalidEntry = Object.entries(kinds).find(
    ([, delivery]) => !(DELIVERIES as readonly string[]).includes(delivery),
  )
  if (invalidEntry !== undefined)
    throw kindInvalid(invalidEntry[0], `The delivery of a kind is one of ${DELIVERIES.join(', ')}.`)
  const columns = {
    ...(enabled !== undefined && { mailEnabled: enabled }),
    ...(digestHour !== undefined && { digestHour }),
  }
  if (Object.keys(columns).length > 0) await User.query(transaction).findById(userId).patch(columns)
  const rowByKind = new Map(rows.map((row) => [row.kind, row]))
  if (rowByKind.size === 0) return
  await transaction('mail_preferences')
    .insert([...rowByKind.values()])
    .onConflict(['userId', 'kind'])
    .merge()
}

/** Reads the name of a kind, or that of the type of its notifications. */
function readKind(name: string): string {
  const kind = name === 'commented_on_post' ? 'comment_on_post' : name
  if (isPreferenceKind(kind)) return kind
  throw kindInvalid(name, `There is no kind of mail named ${name}.`)
}

function kindInvalid(kind: string, message: string): Refusal {
  return new Refusal('mail_kind_invalid', message, { details: { field: `mail_kinds.${kind}` } })
}
