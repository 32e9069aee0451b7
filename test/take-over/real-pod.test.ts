import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { abortTakeOver, rehearse, verifyBuilt } from '../../src/take-over/take-over.js'
import { contentOf } from '../support/take-over/content-of.js'
import { openRealPod, REAL_POD, type RealPod } from '../support/take-over/real-pod.js'

describe.runIf(REAL_POD !== '')('the database of a real diaspora* pod', () => {
  let pod: RealPod

  beforeAll(async () => {
    pod = await openRealPod()
  }, 180_000)
  afterAll(() => pod?.close())

  it('is taken over with all rows and pictures, and every account signs in', async () => {
    const { old, taken, uploads } = pod
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
