import { expect, it } from 'vitest'
import { openEnvelopeCache, TooManySignatures } from '../../../src/federation/outbound/envelope-cache.js'

const limits = { envelopes: 3, bytes: 100, ageMs: 1_000, concurrentSignatures: 2 }

/** Seals that count themselves. */
function counting(envelope = 'signed') {
  const sign = async () => {
    sign.made += 1
    return envelope
  }
  sign.made = 0
  return sign
}

it('the cache makes an envelope once, and again when it is too old', async () => {
  let now = 0
  const cache = openEnvelopeCache(limits, () => now)
  const sign = counting()

  await cache.getOrSign('a', sign)
  now = 999
  expect(await cache.getOrSign('a', sign)).toBe('signed')
  expect(sign.made).toBe(1)
  now = 1_000
  await cache.getOrSign('a', sign)
  expect(sign.made).toBe(2)
})

it('the cache keeps no more than it may, and drops what was requested the longest ago', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const sign = counting()
  for (const name of ['a', 'b', 'c', 'a', 'd']) await cache.getOrSign(name, sign)
  expect(sign.made).toBe(4)

  await cache.getOrSign('a', sign)
  expect(sign.made).toBe(4)
  await cache.getOrSign('b', sign)
  expect(sign.made).toBe(5)
})

it('the cache keeps no more bytes than it may', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const small = counting()
  const large = counting('x'.repeat(99))
  await cache.getOrSign('small', small)
  await cache.getOrSign('large', large)

  await cache.getOrSign('large', large)
  await cache.getOrSign('small', small)

  expect([small.made, large.made]).toEqual([2, 1])
})

it('the cache keeps neither failures nor missing envelopes', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const sign = counting()

  await expect(cache.getOrSign('a', () => Promise.reject(new Error('no key')))).rejects.toThrow('no key')
  expect(await cache.getOrSign('a', async () => undefined)).toBeUndefined()
  expect(await cache.getOrSign('a', sign)).toBe('signed')
  expect(sign.made).toBe(1)
})

it('the cache makes an envelope once for simultaneous requests, and refuses others when too much is under way', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  let finish: (envelope: string) => void = () => {}
  const slow = () =>
    new Promise<string>((resolve) => {
      finish = resolve
    })

  const first = cache.getOrSign('a', slow)
  const second = cache.getOrSign('a', counting('another'))
  const other = cache.getOrSign('b', () => new Promise(() => {}))
  await expect(cache.getOrSign('c', counting())).rejects.toThrow(TooManySignatures)
  finish('signed')

  expect(await Promise.all([first, second])).toEqual(['signed', 'signed'])
  expect(await cache.getOrSign('c', counting())).toBe('signed')
  void other
})
