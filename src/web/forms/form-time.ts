import { timingSafeEqual } from 'node:crypto'
import { ACCOUNT_LIMITS } from '../../domain/accounts/limits.js'
import type { Services } from '../../services/services.js'

/** A hidden field with the time at which a form was made. */
export function signFormTime({ secrets }: Pick<Services, 'secrets'>, at: Date): string {
  const time = String(at.getTime())
  return `${time}.${secrets.mac(time, 'form time').toString('base64url')}`
}

/** False for a form that was sent faster than a person reads it, or a day later, or without its time. */
export function isFormTimeValid(
  services: Pick<Services, 'secrets'> & Pick<Services, 'now'>,
  signed: string | undefined,
): boolean {
  const [time = ''] = signed?.split('.') ?? []
  const signature = Buffer.from(signed ?? '')
  const expectedSignature = Buffer.from(signFormTime(services, new Date(Number(time))))
  if (signature.length !== expectedSignature.length || !timingSafeEqual(signature, expectedSignature)) return false
  const seconds = (services.now().getTime() - Number(time)) / 1_000
  return seconds >= ACCOUNT_LIMITS.minFormSeconds && seconds <= ACCOUNT_LIMITS.maxFormSeconds
}
