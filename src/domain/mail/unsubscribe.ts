import { timingSafeEqual } from 'node:crypto'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { NOTIFICATION_MAIL_DELIVERY, STAFF_MAIL_DELIVERY } from '../../persistence/mail/mail-kinds.js'
import { User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'

/** Kinds of one-click links. Their positions are in links of sent mails: append only. */
const LINK_KINDS = ['digest', ...Object.keys(NOTIFICATION_MAIL_DELIVERY), ...Object.keys(STAFF_MAIL_DELIVERY)]

/** The one-click link of a notification mail (RFC 8058), valid until the e-mail address changes. Undefined: the pod has no https. */
export function unsubscribeUrl(
  services: Pick<Services, 'config' | 'secrets'>,
  user: { readonly id: number; readonly email: string },
  kind: string,
): string | undefined {
  if (!services.config.url.startsWith('https:')) return undefined
  const index = LINK_KINDS.indexOf(kind)
  return `${services.config.url}/m/${user.id.toString(36)}.${index}.${mac(services, user, index)}`
}

function mac(
  { secrets }: Pick<Services, 'secrets'>,
  user: { readonly id: number; readonly email: string },
  index: number,
) {
  return secrets.mac(`${user.id} ${index} ${user.email}`, 'unsubscribe').subarray(0, 16).toString('base64url')
}

interface Subscription {
  readonly userId: number
  readonly kinds: readonly string[]
}

/** The mails that a link ends; undefined: the link is not valid. */
export async function findSubscription(
  services: Pick<Services, 'db' | 'secrets'>,
  token: string,
): Promise<Subscription | undefined> {
  const [, id = '', index = '', given = ''] = /^([0-9a-z]{1,12})\.([0-9]{1,2})\.([\w-]{22})$/.exec(token) ?? []
  const kind = LINK_KINDS[Number(index)]
  if (id === '' || kind === undefined) return undefined
  const user = await User.query(services.db).findById(Number.parseInt(id, 36))
  if (user?.email == null) return undefined
  const expectedMac = mac(services, { id: user.id, email: user.email }, Number(index))
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(expectedMac))) return undefined
  return { userId: user.id, kinds: kind === 'digest' ? await dailyKinds(services, user.id) : [kind] }
}

/** The link of a digest ends all daily kinds. */
async function dailyKinds({ db }: Pick<Services, 'db'>, userId: number): Promise<readonly string[]> {
  const rows = await db('mail_preferences').where({ userId }).select('kind', 'delivery')
  const deliveryOfKind = new Map(rows.map(({ kind, delivery }) => [kind, delivery]))
  return Object.entries(NOTIFICATION_MAIL_DELIVERY).flatMap(([kind, delivery]) =>
    (deliveryOfKind.get(kind) ?? delivery) === 'daily' ? [kind] : [],
  )
}

/** Switches off the mails of a link. A second time changes nothing. */
export async function unsubscribe(
  services: Pick<Services, 'db' | 'requestContext'>,
  { userId, kinds }: Subscription,
): Promise<void> {
  if (kinds.length === 0) return
  await inRequestTransaction(services, async (transaction) => {
    await transaction('mail_preferences')
      .insert(kinds.map((kind) => ({ userId, kind, delivery: 'never' })))
      .onConflict(['userId', 'kind'])
      .merge()
  })
}
