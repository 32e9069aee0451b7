import { hash } from 'node:crypto'

/** Hash that is stored instead of a token, so that a leaked database gives no access. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
