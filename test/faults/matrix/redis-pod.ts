import { Redis } from 'ioredis'
import { expect } from 'vitest'
import type { OwnRedis } from '../../support/queues/redis-server.js'
import { type AssailedPodOptions, type PodUnderFaults, startAssailedPod } from './pod-under-faults.js'
import { openRide, type Ride } from './scenario-run.js'
import { type Answer, statusesIn } from './senders.js'

/** A pod whose queue is in a Redis that can be stopped. */
export interface RedisPod {
  readonly podUnderFaults: PodUnderFaults
  readonly ride: Ride
  readonly redis: OwnRedis
  readonly client: Redis
  close(): Promise<void>
}

export async function startRedisPod(options: Omit<AssailedPodOptions, 'store'> = {}): Promise<RedisPod> {
  const podUnderFaults = await startAssailedPod({ store: 'Redis', ...options })
  const { redis } = podUnderFaults
  if (redis === undefined) throw new Error('Only a Redis of our own can be taken away: there has to be a redis-server.')
  const client = new Redis(redis.url)
  client.on('error', () => {})
  return {
    podUnderFaults,
    ride: openRide(podUnderFaults),
    redis,
    client,
    async close() {
      client.disconnect()
      await podUnderFaults.close()
    },
  }
}

/** The guaranteed time, required of half of the answers: a busy machine delays some of them. */
const PROMPT_MS = 1_200
const SOON = 3_000

/** Checks the requests sent while Redis was certainly unavailable: all got 503, and soon. */
export function expectRefused(answers: readonly Answer[], from: number, to: number): void {
  const refused = answers.filter(({ at, milliseconds }) => at > from && at + milliseconds < to)
  expect(statusesIn(refused)).toEqual([503])
  expect(refused.filter(({ retryAfter }) => retryAfter === null)).toEqual([])
  const waits = refused.map(({ milliseconds }) => milliseconds).toSorted((one, other) => one - other)
  expect(waits[Math.floor(waits.length * 0.5)]).toBeLessThan(PROMPT_MS)
  expect(waits[Math.floor(waits.length * 0.99)]).toBeLessThan(SOON)
  expect(statusesIn(answers)).not.toContain('late')
}
