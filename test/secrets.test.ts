import { createCipheriv } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { StartError } from '../src/errors/start-error.js'
import { createSecrets, readSecretKey } from '../src/services/secrets.js'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'pod-secrets-'))
})
afterEach(() => rm(dataDir, { recursive: true }))

describe('the secret key', () => {
  it('is created once, by the first process, and only its owner may read it', async () => {
    // Each begins while those before it are at another step.
    const keys = await Promise.all(
      Array.from({ length: 40 }, async (_, turns) => {
        for (let turn = 0; turn < turns; turn += 1) await nextTurn()
        return readSecretKey({ secretKey: undefined, dataDir })
      }),
    )

    expect(new Set(keys.map((key) => key.toString('hex'))).size).toBe(1)
    expect(await readdir(dataDir)).toEqual(['secret-key'])
    expect((await stat(join(dataDir, 'secret-key'))).mode & 0o777).toBe(0o600)
    expect(await readFile(join(dataDir, 'secret-key'), 'utf8')).toMatch(/^[0-9a-f]{64}$/)
  })

  it('is the setting if there is one, and then no file is created', async () => {
    const key = await readSecretKey({ secretKey: 'a'.repeat(32), dataDir })

    expect(key).toHaveLength(32)
    expect(await readdir(dataDir)).toEqual([])
  })

  it('is neither regenerated nor treated as empty when its file is truncated', async () => {
    await writeFile(join(dataDir, 'secret-key'), '\n')

    await expect(readSecretKey({ secretKey: undefined, dataDir })).rejects.toThrow('it holds no key')
    expect(await readFile(join(dataDir, 'secret-key'), 'utf8')).toBe('\n')
  })

  it('that cannot be stored causes an error in one sentence', async () => {
    await writeFile(join(dataDir, 'file'), '')

    await expect(readSecretKey({ secretKey: undefined, dataDir: join(dataDir, 'file') })).rejects.toThrow(StartError)
  })
})

describe('a sealed secret', () => {
  const secrets = createSecrets(Buffer.alloc(32, 1))

  it('opens with the same key, and differs each time', () => {
    const sealed = secrets.encrypt('-----BEGIN PRIVATE KEY-----\nä', 'user 1')

    expect(secrets.decrypt(sealed, 'user 1')).toBe('-----BEGIN PRIVATE KEY-----\nä')
    expect(secrets.encrypt('-----BEGIN PRIVATE KEY-----\nä', 'user 1')).not.toEqual(sealed)
  })

  it('does not open with another key, or when one bit has changed', () => {
    const sealed = secrets.encrypt('private', 'user 1')

    expect(() => createSecrets(Buffer.alloc(32, 2)).decrypt(sealed, 'user 1')).toThrow()
    for (const index of sealed.keys()) {
      const changed = Buffer.from(sealed)
      changed[index] = (changed[index] ?? 0) ^ 1
      expect(() => secrets.decrypt(changed, 'user 1')).toThrow()
    }
  })

  it('does not open for another owner', () => {
    const sealed = secrets.encrypt('private', 'user 1')

    for (const owner of ['user 2', 'user 11', 'id tokens'] as const) {
      expect(() => secrets.decrypt(sealed, owner)).toThrow()
    }
  })

  it('of an earlier version opens for no owner, and as unbound', () => {
    const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32, 1), Buffer.alloc(12))
    const sealed = Buffer.concat([Buffer.alloc(12), cipher.update('old'), cipher.final(), cipher.getAuthTag()])

    expect(() => secrets.decrypt(sealed, 'user 1')).toThrow()
    expect(secrets.decryptUnbound(sealed)).toBe('old')
    expect(() => secrets.decryptUnbound(secrets.encrypt('new', 'user 1'))).toThrow()
  })
})
