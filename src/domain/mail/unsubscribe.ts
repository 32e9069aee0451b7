import { timingSafeEqual } from 'node:crypto'
import { inTransaction } from '../../persistence/database/transactions.js'
import { NOTICE_DELIVERY, STAFF_NOTICE_DELIVERY } from '../../persistence/mail/mail-kinds.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'

/** Kinds of one-click links. Their positions are in links of sent mails: append only. */
const LINK_KINDS = ['digest', ...Object.keys(NOTICE_DELIVERY), ...Object.keys(STAFF_NOTICE_DELIVERY)]

type Signing = Pick<Pod, 'config' | 'secrets'>

/** The one-click link of a notice (RFC 8058), valid until the e-mail address changes. Undefined: the pod has no https. */
export function unsubscribeUrl(
  pod: Signing,
  user: { readonly id: number; readonly email: string },
  kind: string,
): string | undefined {
  if (!pod.config.url.startsWith('https:')) return undefined
  const index = LINK_KINDS.indexOf(kind)
  return `${pod.config.url}/m/${user.id.toString(36)}.${index}.${mac(pod, user, index)}`
}

function mac({ secrets }: Pick<Pod, 'secrets'>, user: { readonly id: number; readonly email: string }, index: number) {
  return secrets.mac(`${user.id} ${index} ${user.email}`, 'unsubscribe').subarray(0, 16).toString('base64url')
}

interface Subscription {
  readonly userId: number
  readonly kinds: readonly string[]
}

/** What a link ends; undefined: the link is not valid. */
export async function findSubscription(
  pod: Pick<Pod, 'db' | 'secrets'>,
  token: string,
): Promise<Subscription | undefined> {
  const [, id = '', index = '', given = ''] = /^([0-9a-z]{1,12})\.([0-9]{1,2})\.([\w-]{22})$/.exec(token) ?? []
  const kind = LINK_KINDS[Number(index)]
  if (id === '' || kind === undefined) return undefined
  const user = await User.query(pod.db).findById(Number.parseInt(id, 36))
  if (user?.email == null) return undefined
  const expected = mac(pod, { id: user.id, email: user.email }, Number(index))
  if (!timingSafeEqual(Buffer.from(given), Buffer.from(expected))) return undefined
  return { userId: user.id, kinds: kind === 'digest' ? await dailyKinds(pod, user.id) : [kind] }
}

/** The link of a digest ends all daily kinds. */
async function dailyKinds({ db }: Pick<Pod, 'db'>, userId: number): Promise<readonly string[]> {
  const rows = await db('mail_preferences').where({ userId }).select('kind', 'delivery')
  const chosen = new Map(rows.map(({ kind, delivery }) => [kind, delivery]))
  return Object.entries(NOTICE_DELIVERY).flatMap(([kind, delivery]) =>
    (chosen.get(kind) ?? delivery) === 'daily' ? [kind] : [],
  )
}

/** Ends the notices of a link. A second time changes nothing. */
export async function unsubscribe(
  pod: Pick<Pod, 'db' | 'requestContext'>,
  { userId, kinds }: Subscription,
): Promise<void> {
  if (kinds.length === 0) return
  await inTransaction(pod, async (transaction) => {
    await transaction('mail_preferences')
      .insert(kinds.map((kind) => ({ userId, kind, delivery: 'never' })))
      .onConflict(['userId', 'kind'])
      .merge()
  })
}
