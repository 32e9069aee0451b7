import { Redis } from 'ioredis'
import { expect } from 'vitest'
import type { OwnRedis } from '../../support/queues/redis-server.js'
import { type PodUnderFaults, type PodUnderFaultsOptions, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario, type Scenario } from './scenario-run.js'
import { statusesIn, type TimedResponse } from './senders.js'

/** A pod whose queue is in a Redis that can be stopped. */
export interface RedisPod {
  readonly podUnderFaults: PodUnderFaults
  readonly scenario: Scenario
  readonly redis: OwnRedis
  readonly client: Redis
  close(): Promise<void>
}

export async function startRedisPod(options: Omit<PodUnderFaultsOptions, 'store'> = {}): Promise<RedisPod> {
  const podUnderFaults = await startPodUnderFaults({ store: 'Redis', ...options })
  const { redis } = podUnderFaults
  if (redis === undefined) throw new Error('The tests need a redis-server that they can stop.')
  const client = new Redis(redis.url)
  client.on('error', () => {})
  return {
    podUnderFaults,
    scenario: openScenario(podUnderFaults),
    redis,
    client,
    async close() {
      client.disconnect()
      await podUnderFaults.close()
    },
  }
}

/** Maximum median and 99th percentile of the response times. A busy machine delays some responses. */
const MAX_MEDIAN_MS = 1_200
const MAX_P99_MS = 3_000

/** Expects 503 within the maximum times for all requests during the outage of Redis. */
export function expectRefused(responses: readonly TimedResponse[], from: number, to: number): void {
  const refused = responses.filter(({ at, milliseconds }) => at > from && at + milliseconds < to)
  expect(statusesIn(refused)).toEqual([503])
  expect(refused.filter(({ retryAfter }) => retryAfter === null)).toEqual([])
  const waits = refused.map(({ milliseconds }) => milliseconds).toSorted((one, other) => one - other)
  expect(waits[Math.floor(waits.length * 0.5)]).toBeLessThan(MAX_MEDIAN_MS)
  expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(MAX_P99_MS)
  expect(statusesIn(responses)).not.toContain('late')
}
