import type { KeyObject } from 'node:crypto'
import { decodeBase64 } from '../base64.js'
import type { AccountMigrationEntity } from '../entities/people.js'
import { signRsaSha256, verifyRsaSha256 } from './rsa.js'

/** An account migration. The witness is the identity that does not send it and therefore must sign it. */
export interface Migration {
  readonly from: string
  readonly to: string
  readonly witness: string
}

export function readMigration({ author, profile, old_identity }: AccountMigrationEntity): Migration {
  const to = profile.author
  return { from: old_identity, to, witness: author === to ? old_identity : to }
}

/** Signs the migration with the key of the witness. */
export function signMigration({ from, to }: Pick<Migration, 'from' | 'to'>, key: KeyObject): string {
  return signRsaSha256(Buffer.from(migrationText(from, to)), key).toString('base64')
}

export function verifyMigration(migration: AccountMigrationEntity, witnessKey: KeyObject): boolean {
  const signature = decodeBase64(migration.signature ?? '')
  const { from, to } = readMigration(migration)
  return signature !== undefined && verifyRsaSha256(Buffer.from(migrationText(from, to)), witnessKey, signature)
}

function migrationText(from: string, to: string): string {
  return `AccountMigration:${from}:${to}`
}
