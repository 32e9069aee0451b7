import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { rehearse, switchOver, verifyBuilt } from '../../src/take-over/take-over.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { buildPod } from '../support/pods/build-pod.js'
import { contentOf } from '../support/take-over/content-of.js'
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
  }, 180_000)

  afterAll(async () => {
    await taken?.close()
    await old?.close()
  })

  it('is taken over with all rows and pictures, and every account signs in', async () => {
    const { target, environment, folder } = taken
    const uploads = join(folder, 'old')
    await mkdir(join(uploads, 'images'), { recursive: true })
    execFileSync('tar', ['xzf', join(fixtures, 'uploads-images.tar.gz'), '-C', join(uploads, 'images')])
    const options = { ...taken.options, uploads }
    const before = await contentOf(old.db)
    const { verification } = await rehearse(target, options)
    expect(verification.differences).toEqual([])
    expect(verification.requests.pictures).toBeGreaterThan(0)
    const dropped = Object.fromEntries(
      verification.balances
        .map(({ table, others }) => [table, others] as const)
        .filter(([, others]) => Object.keys(others).length > 0),
    )
    expect(dropped).toEqual({ taggings: { profile: 3 }, o_auth_access_tokens: { expired: 3 } })
    const [{ id } = { id: 0 }] = await taken.rowsOf('select min(id)::int as id from comments')
    await target.db.raw(`update comments set text = text || '.' where id = ?`, [Number(id)])
    expect((await verifyBuilt(target, options)).differences).toContainEqual({
      check: 'comments',
      detail: 'rows differ',
      examples: [String(id)],
    })
    await switchOver(target, options, async () => ({}))
    expect(await contentOf(old.db)).toBe(before)
    for (const table of ['outbox', 'outbound_messages', 'deliveries'])
      expect(await taken.rowsOf('select count(*)::int as count from ??', [table]), table).toEqual([{ count: 0 }])
    expect(
      await taken.rowsOf(`
        select photos.id from photos join people on people.id = photos.author_id
        where people.pod_id is null and photos.remote_path is not null`),
    ).toEqual([])
    const pod = await buildPod({ environment })
    try {
      for (const name of ['dora', 'emil', 'gesa'])
        expect(await signIn(pod.pod, name, 'correct horse battery')).toBeDefined()
      expect(await signIn(pod.pod, 'fritz', 'correct horse battery')).toBeUndefined()
      expect((await pod.inject('/fetch/post/3ac7aa60c98a013fa2c35e57e3ab7a53')).statusCode).toBe(200)
    } finally {
      await pod.close()
    }
  }, 180_000)
})
