import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { rehearse, switchOver } from '../../src/take-over/take-over.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { buildPod } from '../support/pods/build-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

/** A folder with the database and the pictures of a real diaspora* 0.9; without it these tests are left out. */
const fixtures = process.env['DIASPORA_FIXTURES'] ?? ''

describe.runIf(fixtures !== '')('the database of a real diaspora* pod', () => {
  let old: OpenDatabase
  let taken: TestTarget

  beforeAll(async () => {
    old = await openEmptyDatabase()
    taken = await openTestTarget(old.url, 'http://localhost:4500')
    execFileSync(
      'pg_restore',
      ['--no-owner', '--no-privileges', '--dbname', old.url, join(fixtures, 'database.dump')],
      { stdio: 'ignore' },
    )
  }, 60_000)

  afterAll(async () => {
    await taken?.close()
    await old?.close()
  })

  it('is taken over with all rows, and every account signs in', async () => {
    const { target, options, environment } = taken
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
