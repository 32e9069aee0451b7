import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { benchNames } from '../../bench/benches.js'
import { checksOf, costsOf, type FigureTable, figuresIn, SOURCES } from '../../scripts/bench-figures.js'
import { ACTIVITIES, type Costs, forecast, HARDWARE, maximumPeople, ORDINARY } from '../../scripts/load-model.js'

/** A millisecond of everything for each. */
const nothing = { web: 0, worker: 0, postgres: 0, redis: 0 }
const costs: Costs = {
  'public message in': { ...nothing, worker: 1_000 },
  'private message in': { ...nothing, worker: 1_000 },
  'delivery out': nothing,
  request: { ...nothing, web: 1_000, postgres: 2_000 },
  write: nothing,
}
const hardware = { ...HARDWARE, threads: 2, databaseCores: 4, maxBusyShare: 0.5 }

describe('the load model', () => {
  it('counts the actions of people in the busiest second', () => {
    const habits = { ...ORDINARY, activeShare: 0.1, requestsPerDay: 86.4, postsPerDay: 1, reactionsPerDay: 2, peak: 4 }
    const { perSecond } = forecast(100_000, habits, hardware, costs)
    expect(perSecond.request).toBeCloseTo(40) // 10 000 people, a thousandth of a request in a second, four times
    expect(perSecond.write).toBeCloseTo((10_000 * 3 * 4) / 86_400)
  })

  it('counts a public message once, with any number of followers of its author', () => {
    const messages = (people: number, network: number) =>
      forecast(people, { ...ORDINARY, network, privateShare: 0 }, hardware, costs).perSecond['public message in']
    expect(messages(2_000, 1e12) / messages(1_000, 1e12)).toBeCloseTo(2)
    expect(messages(2_000_000, 1_000) / messages(1_000_000, 1_000)).toBeCloseTo(2, 0) // only what people here write draws more
    const quiet = { ...ORDINARY, network: 1_000, reactionsPerPost: 0 }
    const all = forecast(1e7, quiet, hardware, costs).perSecond['public message in']
    expect(all).toBeCloseTo(
      (1_000 * quiet.activeShare * quiet.postsPerDay * (1 - quiet.privateShare) * quiet.peak) / 86_400,
    )
  })

  it('counts a private message for each recipient', () => {
    const messages = (people: number) =>
      forecast(people, { ...ORDINARY, network: 1_000 }, hardware, costs).perSecond['private message in']
    expect(messages(1_000_000) / messages(1_000)).toBeCloseTo(1_000)
  })

  it('stores everything once', () => {
    const habits = {
      ...ORDINARY,
      network: 1_000,
      activeShare: 1,
      postsPerDay: 1,
      reactionsPerDay: 0,
      reactionsPerPost: 0,
      rowBytes: 1e9,
    }
    const rows = (people: number) => forecast(people, habits, hardware, costs).rowGigabytesPerYear / 365
    expect(rows(1_000_000)).toBeCloseTo(1_000 + 1_000_000) // of all others and of all here
  })

  it('plans processes, the database and its replicas', () => {
    const habits = {
      ...ORDINARY,
      activeShare: 1,
      requestsPerDay: 86_400,
      peak: 1,
      listShare: 1,
      contacts: 0,
      network: 1,
    }
    const found = forecast(1_000, habits, hardware, costs) // a thousand requests in a second
    const tier = (name: string) => found.tiers.find((each) => each.tier === name)
    expect(tier('web')).toMatchObject({ cores: 1, load: 2, processes: 2 })
    expect(tier('postgres')).toMatchObject({ cores: 2, load: 1 })
    expect(found).toMatchObject({ first: 'web', replicas: 0, connections: 2 * 10 + 20 })
    expect(forecast(2_000, habits, hardware, costs).replicas).toBe(2) // 3.6 cores of lists, two of which one may be busy with
  })

  it('returns the number of people with which a tier is full', () => {
    const maximum = maximumPeople('web', ORDINARY, hardware, costs)
    const load = (people: number) =>
      forecast(people, ORDINARY, hardware, costs).tiers.find(({ tier }) => tier === 'web')?.load
    expect(load(maximum)).toBeCloseTo(1, 2)
    expect(maximumPeople('redis', ORDINARY, hardware, costs)).toBeGreaterThanOrEqual(5e8) // it costs nothing here
  })
})

describe('the figures of the benches', () => {
  const table = async (): Promise<FigureTable> => JSON.parse(await readFile('bench/figures.json', 'utf8'))

  it('are of benches that there are, and there is one for each cost', async () => {
    const { figures } = await table()
    expect(figures.filter(({ bench }) => !benchNames.includes(bench))).toEqual([])
    const found = costsOf(await table())
    for (const activity of ACTIVITIES) expect(Object.values(found[activity]).some((cost) => cost > 0)).toBe(true)
  })

  it('are those of the model for the same machine', async () => {
    const checks = checksOf(await table())
    expect(checks.length).toBeGreaterThan(0)
    for (const { name, measured, expected } of checks) {
      expect([name, measured / expected > 0.6 && measured / expected < 1.25]).toEqual([name, true])
    }
  })

  it('are found among the lines of a complete run', async () => {
    const { figures } = await table()
    const [first] = figures
    const other = { ...first, case: 'another case' }
    const lines = [
      'a line for people',
      ...figures.map((figure) => JSON.stringify({ ...figure, rounds: 3 })),
      JSON.stringify(other),
    ]
    expect(figuresIn(lines.join('\n'))).toEqual(figures)
  })

  it('are missed where a cost has none', async () => {
    const { figures, ...machine } = await table()
    const without = { ...machine, figures: figures.filter(({ bench }) => bench !== SOURCES.write[0]?.bench) }
    expect(() => costsOf(without)).toThrow('is missing')
  })
})
