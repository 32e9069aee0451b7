import { expect, it } from 'vitest'
import { addSignerLookups } from '../../src/jobs/waiting/signer-lookups.js'
import type { Services } from '../../src/services/services.js'

/** The priorities of the lookups at these hosts, which no pod has named before. */
async function prioritiesOf(hosts: readonly string[]): Promise<ReadonlySet<number | undefined>> {
  const priorities = new Set<number | undefined>()
  const jobs = {
    async addEach(_job, _jobs, options) {
      priorities.add(options?.priority)
    },
  } as Partial<Services['jobs']> as Services['jobs'] // nothing else is called
  await addSignerLookups(
    { jobs },
    hosts.map((host) => ({ host, source: undefined, isKnown: false, isRetry: false })),
  )
  return priorities
}

it('many new hosts of one domain are looked up later, and those of many domains under one public suffix are not', async () => {
  const ofOneDomain = Array.from({ length: 20 }, (_, number) => `pod${number}.invented.example`)
  const ofTheirOwn = Array.from({ length: 20 }, (_, number) => `pod${number}.co.uk`)

  expect((await prioritiesOf(ofOneDomain)).size).toBeGreaterThan(1)
  expect((await prioritiesOf(ofTheirOwn)).size).toBe(1)
})
