import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { abortTakeOver, rehearse, verifyBuilt } from '../../src/take-over/take-over.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { contentOf } from '../support/take-over/content-of.js'
import { REAL_POD, restoreRealPod } from '../support/take-over/real-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

describe.runIf(REAL_POD !== '')('the database of a real diaspora* pod', () => {
  let old: OpenDatabase
  let taken: TestTarget
  let uploads: string

  beforeAll(async () => {
    old = await openEmptyDatabase()
    taken = await openTestTarget(old.url, 'http://localhost:4500')
    uploads = await restoreRealPod(old.url, taken.folder)
  }, 180_000)

  afterAll(async () => {
    await taken?.close()
    await old?.close()
  })

  it('is taken over with all rows and pictures, and every account signs in', async () => {
    const { target } = taken
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
    expect(await contentOf(old.db)).toBe(before)
    await abortTakeOver(target)
  }, 180_000)
})
