import { inTransaction } from '../../persistence/database/transactions.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'
import { DELIVERIES, isPreferenceKind, type MailDelivery, PREFERENCE_DEFAULTS } from './mail-kinds.js'

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

export async function findMailPreferences({ db }: Pick<Pod, 'db'>, userId: number): Promise<MailPreferences> {
  const user = await User.query(db).findById(userId).throwIfNotFound()
  const rows = await db('mail_preferences').where({ userId }).select('kind', 'delivery')
  const chosen = Object.fromEntries(rows.map(({ kind, delivery }) => [kind, delivery]))
  return { enabled: user.mailEnabled, digestHour: user.digestHour, kinds: { ...PREFERENCE_DEFAULTS, ...chosen } }
}

/** Changes the given preferences, all of them or none. */
export async function changeMailPreferences(
  pod: Pick<Pod, 'db' | 'claimedKey'>,
  userId: number,
  { enabled, digestHour, kinds = {} }: MailPreferencesChange,
): Promise<void> {
  if (digestHour !== undefined && !(Number.isInteger(digestHour) && digestHour >= 0 && digestHour <= 23)) {
    throw new Refusal('digest_hour_invalid', 'The hour is a number from 0 to 23.')
  }
  for (const [kind, delivery] of Object.entries(kinds)) {
    if (isPreferenceKind(kind) && (DELIVERIES as readonly string[]).includes(delivery)) continue
    throw new Refusal('mail_kind_invalid', `The delivery of ${kind} is one of ${DELIVERIES.join(', ')}.`)
  }
  await inTransaction(pod, async (transaction) => {
    const columns = {
      ...(enabled !== undefined && { mailEnabled: enabled }),
      ...(digestHour !== undefined && { digestHour }),
    }
    if (Object.keys(columns).length > 0) await User.query(transaction).findById(userId).patch(columns)
    const rows = Object.entries(kinds).map(([kind, delivery]) => ({ userId, kind, delivery }))
    if (rows.length > 0) await transaction('mail_preferences').insert(rows).onConflict(['userId', 'kind']).merge()
  })
}
