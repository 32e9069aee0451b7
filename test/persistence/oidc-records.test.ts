import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { trimInteractions, upsertRecord } from '../../src/persistence/accounts/oidc-records.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let pod: TestPod
beforeEach(async () => {
  pod ??= await buildPod()
  await pod.pod.db('oidcRecords').delete()
})
afterAll(() => pod?.close())

const keep = (uid: string, lifetime: number, payload: object = {}, kind: 'Interaction' | 'Session' = 'Interaction') =>
  upsertRecord(pod.pod.db, kind, { hash: randomBytes(32), uid, payload, lifetime })
const listRecords = async () => (await pod.pod.db('oidcRecords').orderBy('uid').pluck('uid')) as string[]

describe('trimInteractions', () => {
  it('deletes expired interactions and no sessions', async () => {
    await keep('expired', -1)
    await keep('open', 60)
    await keep('session', -1, {}, 'Session')

    expect(await trimInteractions(pod.pod.db, 10)).toBe(1)
    expect(await listRecords()).toEqual(['open', 'session'])
  })

  it('keeps the newest, and before these the interactions with a sign-in', async () => {
    await keep('a signed in, old', 10, { session: { accountId: 'ann@pod.example' } })
    for (const [uid, seconds] of [
      ['b oldest', 20],
      ['c older', 30],
      ['d newest', 40],
    ] as const) {
      await keep(uid, seconds)
    }

    expect(await trimInteractions(pod.pod.db, 2)).toBe(2)
    expect(await listRecords()).toEqual(['a signed in, old', 'd newest'])
  })
})
