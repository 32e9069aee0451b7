import { describe, expect, it } from 'vitest'
import { DELIVERY_LIMITS } from '../../../src/federation/outbound/limits.js'
import {
  assessPod,
  type DeliveryOutcome,
  deliveryOutcomeOfError,
  retrySeconds,
  toFailedDelivery,
} from '../../../src/federation/outbound/pod-health.js'
import { RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'
import type { OutboundRecord } from '../../../src/persistence/outbound/outbound-record.js'

const delivered: DeliveryOutcome = { kind: 'delivered' }
const refused: DeliveryOutcome = { kind: 'refused', fault: 'refused', status: 400, reason: 'no' }
const moved: DeliveryOutcome = { kind: 'refused', fault: 'moved', status: 301, reason: 'elsewhere' }
const away: DeliveryOutcome = {
  kind: 'away',
  fault: 'net',
  status: undefined,
  reason: 'refused',
  retryAfter: undefined,
}
const notStarted: DeliveryOutcome = { kind: 'not_started' }
const least = () => 0
const most = () => 1 - Number.EPSILON

describe('retrySeconds', () => {
  it.each([
    [1, 256, 314],
    [2, 625, 712],
    [9, 20_736, 21_026],
    [19, 234_256, 234_836],
  ])('the delay after failure %i is between %i and %i', (failures, from, to) => {
    expect(retrySeconds(failures, least)).toBe(from)
    expect(retrySeconds(failures, most)).toBe(to)
  })
})

describe('assessPod', () => {
  it.each([
    ['nothing was started', [notStarted], 'unchanged'],
    ['nothing was sent', [], 'unchanged'],
    ['there was no time to wait for an answer', [{ kind: 'silent' }], 'silent'],
    ['one delivery was accepted and others were refused', [refused, delivered, refused], 'available'],
    ['all was refused', [refused], 'refuses'],
    ['the pod failed after an accepted delivery', [delivered, away], 'away'],
  ] as const)('the state is right if %s', (_, outcomes, kind) => {
    expect(assessPod(outcomes, 0)).toMatchObject({ kind })
  })

  it('tells a redirect from other refusals', () => {
    expect(assessPod([moved], 0)).toMatchObject({ status: 'http_failed', moved: 1 })
    expect(assessPod([moved, refused], 0)).toMatchObject({ moved: 0 })
  })

  it('waits longer after each failure, but no longer than about six hours', () => {
    const secondsAfter = (failures: number) => assessPod([away], failures, least)
    expect(secondsAfter(0)).toMatchObject({ seconds: 256 })
    expect(secondsAfter(8)).toMatchObject({ seconds: 20_736 })
    expect(secondsAfter(40)).toMatchObject({ seconds: 20_736 })
  })

  it('waits as long as it was asked to, if that is longer', () => {
    const busy: DeliveryOutcome = { ...away, fault: 'overloaded', status: 503, retryAfter: 1_000 }
    expect(assessPod([busy], 0, least)).toMatchObject({ seconds: 1_000 })
    expect(assessPod([busy], 4, least)).toMatchObject({ seconds: 4_096 })
  })
})

describe('toFailedDelivery', () => {
  const failureAfter = (outcome: DeliveryOutcome, attempts: number, record: OutboundRecord = 'post') =>
    toFailedDelivery(outcome, { record, attempts }, DELIVERY_LIMITS)

  it('is undefined after a delivery and without an attempt', () => {
    expect([failureAfter(delivered, 0), failureAfter(notStarted, 0)]).toEqual([undefined, undefined])
  })

  it('leaves the time to the pod when it is away, and keeps its own when it alone was refused', () => {
    expect(failureAfter(away, 0)).toMatchObject({ seconds: undefined, isFinal: false })
    expect(failureAfter(refused, 0)).toMatchObject({ seconds: expect.any(Number), isFinal: false })
  })

  it('ends after ten tries, of a contact after twenty', () => {
    expect([8, 9].map((attempts) => failureAfter(refused, attempts)?.isFinal)).toEqual([false, true])
    expect([9, 18, 19].map((attempts) => failureAfter(refused, attempts, 'contact')?.isFinal)).toEqual([
      false,
      false,
      true,
    ])
  })

  it('is not an attempt while the pod is away', () => {
    expect([0, 9, 50].map((attempts) => failureAfter(away, attempts))).toMatchObject(
      [0, 9, 50].map(() => ({ countsAsAttempt: false, seconds: undefined, isFinal: false })),
    )
  })

  it('holds back a delivery that may crash the pod, and never gives it up for that', () => {
    const crashed: DeliveryOutcome = { ...away, fault: 'overloaded', status: 500 }
    expect(failureAfter(crashed, 8)).toMatchObject({ countsAsAttempt: true, seconds: undefined, isFinal: false })
    expect(failureAfter(crashed, 9)).toMatchObject({
      countsAsAttempt: true,
      seconds: expect.any(Number),
      isFinal: false,
    })
    expect(failureAfter(crashed, 50)).toMatchObject({ isFinal: false })
  })

  it('ends at once if no later attempt can help', () => {
    const forbidden: DeliveryOutcome = { kind: 'forbidden', fault: 'not_allowed', reason: 'private' }
    expect(failureAfter(forbidden, 0)).toMatchObject({ isFinal: true })
    expect(failureAfter({ kind: 'not_signable', fault: 'no_key' }, 0)).toMatchObject({ isFinal: true })
    expect(failureAfter({ kind: 'not_signable', fault: 'internal' }, 0)).toMatchObject({ isFinal: false })
  })
})

describe('deliveryOutcomeOfError', () => {
  it('is no outcome of the other pod if this pod is too busy', () => {
    expect(deliveryOutcomeOfError(new RemotePodError('busy', 'too much'))).toEqual(notStarted)
  })

  it('rethrows a fault of this pod', () => {
    const mistake = new TypeError('oh')
    expect(() => deliveryOutcomeOfError(mistake)).toThrow(mistake)
  })
})
