import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { IMPORT_LIMITS } from '../../../src/federation/archives/limits.js'
import { openPeopleFinder } from '../../../src/federation/archives/lookups/people-finder.js'
import { claimLookup, deleteOldLookups } from '../../../src/persistence/archives/archive-lookups.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())
beforeEach(() => pod.empty('archive_lookups'))

const noon = new Date('2026-01-02T12:00:00Z')
const limits = { now: noon, max: 3, intervalMs: 500 }

it('lookups at one host are spaced and counted for all imports together, and begin anew each day', async () => {
  const claim = (host: string, now = noon) => claimLookup(pod.db, host, { ...limits, now })
  const times = await Promise.all(Array.from({ length: 5 }, () => claim('victim.example')))
  const milliseconds = times.map((time) => time && time.getTime() - noon.getTime())
  expect(milliseconds.toSorted()).toEqual([0, 1_000, 500, undefined, undefined])
  expect(await claim('other.example')).toEqual(noon)
  expect(await claim('victim.example', new Date('2026-01-02T23:59:59Z'))).toBeUndefined()

  const nextDay = new Date('2026-01-03T00:00:00Z')
  expect(await claim('victim.example', nextDay)).toEqual(nextDay)
  await deleteOldLookups(pod.db, nextDay)
  expect(await pod.db('archive_lookups').pluck('host')).toEqual(['victim.example'])
})

it('a lookup does not wait for a start that was stored while the clock was ahead', async () => {
  await claimLookup(pod.db, 'victim.example', { ...limits, now: new Date('2026-03-02T12:00:00Z') })

  expect(await claimLookup(pod.db, 'victim.example', limits)).toEqual(noon)
})

it('people are not looked up after the time for all lookups', async () => {
  const { signal } = new AbortController()
  pod.fakePods.person('ann@slow.example')
  const refused = { state: 'refused', reason: 'over_limit' }

  const found = await openPeopleFinder(pod, 0).find(['ann@slow.example'], signal)

  expect(found.get('ann@slow.example')).toEqual(refused)
  expect(pod.fakePods.requests.filter((request) => request.startsWith('slow.example'))).toEqual([])
  expect((await openPeopleFinder(pod).find(['ann@slow.example'], signal)).get('ann@slow.example')?.state).toBe('found')
})

it('people beyond the limit of their host are not looked up', async () => {
  const { signal } = new AbortController()
  const yesterday = await claimLookup(pod.db, 'victim.example', { ...limits, now: new Date(Date.now() - 60_000) })
  expect(yesterday).toBeDefined()
  await pod
    .db('archive_lookups')
    .update({ count: IMPORT_LIMITS.unknownPeopleOfHost - 1, day: pod.db.raw(`(now() at time zone 'utc')::date`) })
  pod.fakePods.person('one@victim.example')
  pod.fakePods.person('two@victim.example')
  expect((await openPeopleFinder(pod).find(['one@victim.example'], signal)).get('one@victim.example')?.state).toBe(
    'found',
  )
  expect((await openPeopleFinder(pod).find(['two@victim.example'], signal)).get('two@victim.example')).toEqual({
    state: 'refused',
    reason: 'over_limit',
  })
  expect(pod.fakePods.requests.filter((request) => request.includes('two@victim.example'))).toEqual([])
})
