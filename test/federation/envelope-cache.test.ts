import { expect, it } from 'vitest'
import { openEnvelopeCache, TooManySignatures } from '../../src/federation/outbound/envelope-cache.js'

const limits = { envelopes: 3, bytes: 100, ageMs: 1_000, concurrentSignatures: 2 }

/** Seals that count themselves. */
function counting(envelope = 'sealed') {
  const seal = async () => {
    seal.made += 1
    return envelope
  }
  seal.made = 0
  return seal
}

it('the cache makes an envelope once, and again when it is too old', async () => {
  let now = 0
  const cache = openEnvelopeCache(limits, () => now)
  const seal = counting()

  await cache.getOrSeal('a', seal)
  now = 999
  expect(await cache.getOrSeal('a', seal)).toBe('sealed')
  expect(seal.made).toBe(1)
  now = 1_000
  await cache.getOrSeal('a', seal)
  expect(seal.made).toBe(2)
})

it('the cache keeps no more than it may, and drops what was requested the longest ago', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const seal = counting()
  for (const name of ['a', 'b', 'c', 'a', 'd']) await cache.getOrSeal(name, seal)
  expect(seal.made).toBe(4)

  await cache.getOrSeal('a', seal)
  expect(seal.made).toBe(4)
  await cache.getOrSeal('b', seal)
  expect(seal.made).toBe(5)
})

it('the cache keeps no more bytes than it may', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const small = counting()
  const large = counting('x'.repeat(99))
  await cache.getOrSeal('small', small)
  await cache.getOrSeal('large', large)

  await cache.getOrSeal('large', large)
  await cache.getOrSeal('small', small)

  expect([small.made, large.made]).toEqual([2, 1])
})

it('the cache keeps neither failures nor missing envelopes', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const seal = counting()

  await expect(cache.getOrSeal('a', () => Promise.reject(new Error('no key')))).rejects.toThrow('no key')
  expect(await cache.getOrSeal('a', async () => undefined)).toBeUndefined()
  expect(await cache.getOrSeal('a', seal)).toBe('sealed')
  expect(seal.made).toBe(1)
})

it('the cache makes an envelope once for simultaneous requests, and refuses others when too much is under way', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  let finish: (envelope: string) => void = () => {}
  const slow = () =>
    new Promise<string>((resolve) => {
      finish = resolve
    })

  const first = cache.getOrSeal('a', slow)
  const second = cache.getOrSeal('a', counting('another'))
  const other = cache.getOrSeal('b', () => new Promise(() => {}))
  await expect(cache.getOrSeal('c', counting())).rejects.toThrow(TooManySignatures)
  finish('sealed')

  expect(await Promise.all([first, second])).toEqual(['sealed', 'sealed'])
  expect(await cache.getOrSeal('c', counting())).toBe('sealed')
  void other
})
