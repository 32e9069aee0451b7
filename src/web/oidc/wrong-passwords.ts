import { LRUCache } from 'lru-cache'
import { networkOfAddress } from '../../networks/network-source.js'
import { tooMany } from '../limits/rate-limit.js'
import type { RequestFault } from '../server/request-faults.js'
import { OIDC_LIMITS } from './limits.js'

/**
 * Delays sign-ins after wrong passwords, longer each time. Counted per account and network address together, so that an attacker
 * cannot lock the owner out.
 */
export interface WrongPasswords {
  /** Undefined: no delay. */
  waitFor(ip: string, username: string): RequestFault | undefined
  count(ip: string, username: string): void
  forget(ip: string, username: string): void
}

export function openWrongPasswords(now: () => Date): WrongPasswords {
  const attempts = new LRUCache<string, { readonly times: number; readonly until: number }>({
    maxSize: OIDC_LIMITS.sources,
    sizeCalculation: () => 1,
  })
  const keyOf = (ip: string, username: string) => `${networkOfAddress(ip)} ${username.slice(0, 255)}`
  return {
    waitFor(ip, username) {
      const wait = (attempts.get(keyOf(ip, username))?.until ?? 0) - now().getTime()
      return wait > 0 ? tooMany(Math.ceil(wait / 1_000)) : undefined
    },
    count(ip, username) {
      const key = keyOf(ip, username)
      const times = (attempts.get(key)?.times ?? 0) + 1
      attempts.set(key, { times, until: now().getTime() + waitAfter(times) * 1_000 })
    },
    forget(ip, username) {
      attempts.delete(keyOf(ip, username))
    },
  }
}

function waitAfter(times: number): number {
  const over = times - OIDC_LIMITS.wrongPasswords
  if (over < 0) return 0
  return Math.min(OIDC_LIMITS.firstWaitSeconds * 2 ** over, OIDC_LIMITS.maxWaitSeconds)
}
