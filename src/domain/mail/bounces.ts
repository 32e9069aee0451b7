import { timingSafeEqual } from 'node:crypto'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { recordMailboxFault } from '../../persistence/mail/mails.js'
import { type MailState, User } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { MAIL_LIMITS } from './limits.js'

/** The envelope sender of a mail to a user: MAIL_BOUNCE_ADDRESS with the user and a MAC. Undefined: the setting is missing. */
export function bounceAddress(
  { config, secrets }: Pick<Services, 'config' | 'secrets'>,
  userId: number,
): string | undefined {
  const [local, domain] = config.mail?.bounceAddress?.split('@') ?? []
  return local === undefined ? undefined : `${local}+${userId}.${bounceMac({ secrets }, userId)}@${domain}`
}

function bounceMac({ secrets }: Pick<Services, 'secrets'>, userId: number): string {
  return secrets.mac(String(userId), 'bounce').subarray(0, 16).toString('hex')
}

export interface BounceResult {
  /** Null: the message changes nothing. */
  readonly username: string | null
  readonly state: MailState | null
  readonly ignored: 'no_address' | 'no_failure' | 'wrong_mac' | 'no_user' | null
}

/**
 * Records the failure that a delivery status notification (RFC 3464) reports. Only a notification of a failure with a valid tagged address changes anything:
 * automatic replies come to the same address.
 */
export async function recordBounce(services: Services, message: string): Promise<BounceResult> {
  const ignore = (ignored: NonNullable<BounceResult['ignored']>) => ({ username: null, state: null, ignored })
  const bounceTag = findTagged(services, message)
  if (bounceTag === undefined) return ignore('no_address')
  if (!/^Action:\s*failed\s*$/im.test(message)) return ignore('no_failure')
  const { userId, mac } = bounceTag
  if (!timingSafeEqual(Buffer.from(mac), Buffer.from(bounceMac(services, userId)))) return ignore('wrong_mac')
  const isGone = /^Status:\s*5\.1\.[0-9]+/im.test(message)
  const { maxPermanentFaults: limit, faultDays: days } = MAIL_LIMITS
  return inRequestTransaction(services, async (transaction) => {
    const user = await User.query(transaction).findById(userId)
    if (user === undefined || user.closedAt !== null) return ignore('no_user')
    const state = await recordMailboxFault(transaction, userId, { isGone, limit, days })
    return { username: user.username, state, ignored: null }
  })
}

/** The tagged address is in the envelope, which mail programs add as a header, or in `To`. */
function findTagged({ config }: Pick<Services, 'config'>, message: string) {
  const [local = '', domain = ''] = config.mail?.bounceAddress?.split('@') ?? []
  if (local === '') return undefined
  const pattern = new RegExp(`${escapeRegExp(local)}\\+([0-9]{1,18})\\.([0-9a-f]{32})@${escapeRegExp(domain)}`, 'i')
  const [, id, mac] = pattern.exec(message) ?? []
  return id === undefined || mac === undefined ? undefined : { userId: Number(id), mac: mac.toLowerCase() }
}

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}
