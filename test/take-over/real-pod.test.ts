import { execFileSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { DIASPORA_PEPPER } from '../../src/domain/accounts/passwords/bcrypt-password.js'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { createSecrets, readSecretKey } from '../../src/pod/secrets.js'
import { rehearse, switchOver, type TakeOverOptions, type TakeOverTarget } from '../../src/take-over/take-over.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { buildPod } from '../support/pods/build-pod.js'

/** A folder with the database and the pictures of a real diaspora* 0.9; without it these tests are left out. */
const fixtures = process.env['DIASPORA_FIXTURES'] ?? ''

describe.runIf(fixtures !== '')('the database of a real diaspora* pod', () => {
  let old: OpenDatabase
  let database: OpenDatabase
  let folder: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'real-pod-'))
    old = await openEmptyDatabase()
    database = await openEmptyDatabase()
    execFileSync(
      'pg_restore',
      ['--no-owner', '--no-privileges', '--dbname', old.url, join(fixtures, 'database.dump')],
      { stdio: 'ignore' },
    )
  }, 60_000)

  afterAll(async () => {
    await database?.close()
    await old?.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('is taken over with all rows, and every account signs in', async () => {
    const environment = {
      POD_URL: 'http://localhost:4500',
      DATABASE_URL: database.url,
      SECRET_KEY: 'a key that is only good for tests',
      UPLOADS_DIR: join(folder, 'uploads'),
    }
    const config = readConfig(environment)
    const target: TakeOverTarget = {
      db: database.db,
      url: database.url,
      config,
      secrets: createSecrets(await readSecretKey(config)),
    }
    const options: TakeOverOptions = {
      ...{
        from: old.url,
        uploads: undefined,
        uploadsMode: 'link',
        oidcKey: undefined,
        pepper: DIASPORA_PEPPER,
        rate: undefined,
      },
      ...{
        shouldVerifyAllSignatures: true,
        shouldLockBrokenKeys: false,
        sidekiq: undefined,
        mayLoseJobs: false,
        signal: new AbortController().signal,
        report: () => undefined,
      },
    }
    const { verification } = await rehearse(target, options)
    expect(verification.differences).toEqual([])
    const dropped = Object.fromEntries(
      verification.balances
        .map(({ table, others }) => [table, others] as const)
        .filter(([, others]) => Object.keys(others).length > 0),
    )
    expect(dropped).toEqual({ taggings: { profile: 3 }, o_auth_access_tokens: { expired: 3 } })
    await switchOver(target, options, async () => ({}))
    const pod = await buildPod({ environment })
    try {
      for (const name of ['dora', 'emil', 'gesa'])
        expect(await signIn(pod.pod, name, 'correct horse battery')).toBeDefined()
      expect(await signIn(pod.pod, 'fritz', 'correct horse battery')).toBeUndefined()
      expect((await pod.inject('/fetch/post/3ac7aa60c98a013fa2c35e57e3ab7a53')).statusCode).toBe(200)
    } finally {
      await pod.close()
    }
  }, 60_000)
})
