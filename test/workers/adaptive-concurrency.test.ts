import type { Job } from 'bullmq'
import { describe, expect, it } from 'vitest'
import { openAdaptiveConcurrency } from '../../workers/adaptive-concurrency.js'

/** The property of a job that determines the concurrency. */
const jobOf = (messages: number) =>
  ({ name: 'receive-public', data: { messages: Array.from({ length: messages }) } }) as unknown as Job

const rowJob = { name: 'receive-public', data: { outboxId: 4711 } } as unknown as Job

describe('adaptive concurrency', () => {
  it('is low while there are few jobs', () => {
    const load = openAdaptiveConcurrency('inbound')

    expect([1, 2, 3].map(() => load.begin(jobOf(1)))).toEqual([32, 32, 32])
  })

  it('increases with jobs of one message, up to a limit', () => {
    const load = openAdaptiveConcurrency('inbound')
    const sizes = Array.from({ length: 300 }, () => load.begin(jobOf(1)))

    expect([sizes[15], sizes[31], sizes[99], sizes.at(-1)]).toEqual([32, 64, 200, 256])
  })

  it('is low while all jobs are full batches, and increases when they have ended', () => {
    const load = openAdaptiveConcurrency('inbound')
    const full = Array.from({ length: 32 }, () => jobOf(24))
    const sizes = full.map((job) => load.begin(job))
    expect(sizes.at(-1)).toBe(32)

    for (const job of full) load.end(job)
    const again = Array.from({ length: 40 }, () => load.begin(rowJob))
    expect(again.at(-1)).toBe(80)
  })

  it('increases with private messages, which mostly arrive one by one', () => {
    const load = openAdaptiveConcurrency('inbound-private')
    const privateJob = { name: 'receive-private', data: { messages: [{}] } } as unknown as Job
    const sizes = Array.from({ length: 191 }, () => load.begin(privateJob))

    expect([sizes[3], sizes[7], sizes[39], sizes[99]]).toEqual([8, 16, 80, 128])
    expect(load.begin(privateJob)).toBe(8) // their batches are full
  })
})
