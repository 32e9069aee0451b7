import { hash } from 'node:crypto'

/** What is stored of a token: whoever reads the database cannot use it. */
export function hashToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}
