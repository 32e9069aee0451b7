import { randomBytes } from 'node:crypto'

export function newGuid(): string {
  return randomBytes(16).toString('hex')
}
