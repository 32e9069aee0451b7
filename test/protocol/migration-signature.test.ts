import { generateKeyPairSync } from 'node:crypto'
import { expect, it } from 'vitest'
import type { AccountMigrationEntity } from '../../src/protocol/entities/people.js'
import { readMigration, signMigration, verifyMigration } from '../../src/protocol/signatures/migration-signature.js'

const oldKey = generateKeyPairSync('rsa', { modulusLength: 1_024 })
const newKey = generateKeyPairSync('rsa', { modulusLength: 1_024 })
const from = 'quin@q.example'
const to = 'quin@r.example'

function migration(author: string, signature?: string): AccountMigrationEntity {
  const profile = { type: 'profile', author: to, searchable: true, public: false, nsfw: false } as const
  return { type: 'account_migration', author, profile, signature, old_identity: from }
}

it('has the identity that does not send it as its witness', () => {
  expect(readMigration(migration(from))).toEqual({ from, to, witness: to })
  expect(readMigration(migration(to))).toEqual({ from, to, witness: from })
})

it('is proven by the signature of the witness over both identities, the old one first', () => {
  const byNew = signMigration({ from, to }, newKey.privateKey)
  const byOld = signMigration({ from, to }, oldKey.privateKey)

  expect(verifyMigration(migration(from, byNew), newKey.publicKey)).toBe(true)
  expect(verifyMigration(migration(to, byOld), oldKey.publicKey)).toBe(true)
  expect(verifyMigration(migration(from, byOld), newKey.publicKey)).toBe(false)
  expect(
    verifyMigration(migration(from, signMigration({ from: to, to: from }, newKey.privateKey)), newKey.publicKey),
  ).toBe(false)
  expect(verifyMigration(migration(from), newKey.publicKey)).toBe(false)
})
