import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { decryptWith, encryptFor } from '../../src/operations/backup/encryption.js'
import { openPassphraseRecipient, readPassphraseIdentities } from '../../src/operations/backup/passphrase-identity.js'
import { openFolderRepository } from '../../src/operations/backup/repositories/folder-repository.js'
import type { Repository } from '../../src/operations/backup/repositories/repository.js'

const PASSPHRASE = 'correct horse battery'

describe('the passphrase of backups', () => {
  let folder: string
  let repository: Repository
  let recipient: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'passphrase-'))
    repository = openFolderRepository(folder)
    await expect(openPassphraseRecipient(repository, 'short')).rejects.toThrow('at least 12 characters')
    await expect(readPassphraseIdentities(repository, PASSPHRASE)).rejects.toThrow('was made with --passphrase')
    recipient = (await openPassphraseRecipient(repository, PASSPHRASE, 10)).recipient
  })
  afterAll(() => rm(folder, { recursive: true }))

  it('decrypts backups for its recipient, which later backups have too', async () => {
    const encrypted = encryptFor([recipient])(chunksOf('secret'))
    const identities = await readPassphraseIdentities(repository, PASSPHRASE)

    expect(await text(decryptWith(identities)(encrypted))).toBe('secret')
    expect((await openPassphraseRecipient(repository, PASSPHRASE)).recipient).toBe(recipient)
  })

  it('is needed again: another one is refused, and makes no second identity', async () => {
    const [before, refused] = [
      await readFile(join(folder, 'passphrase-identity.age'), 'latin1'),
      'is not that of the backups',
    ]

    await expect(openPassphraseRecipient(repository, 'correct horse staple')).rejects.toThrow(refused)
    await expect(readPassphraseIdentities(repository, 'correct horse staple')).rejects.toThrow(refused)
    expect(await readFile(join(folder, 'passphrase-identity.age'), 'latin1')).toBe(before)
    expect(before).toMatch(/^age-encryption\.org\/v1\n-> scrypt /)
    expect(before).not.toContain('AGE-SECRET-KEY')
  })
})

async function* chunksOf(content: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(content)
}
