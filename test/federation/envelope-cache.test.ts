import { expect, it } from 'vitest'
import { openEnvelopeCache, TooManySignatures } from '../../src/federation/inbound/envelope-cache.js'

const limits = { envelopes: 3, bytes: 100, ageMs: 1_000, underWay: 2 }

/** Seals that count themselves. */
function counting(envelope = 'sealed') {
  const seal = async () => {
    seal.made += 1
    return envelope
  }
  seal.made = 0
  return seal
}

it('makes an envelope once, and again when it is too old', async () => {
  let now = 0
  const cache = openEnvelopeCache(limits, () => now)
  const seal = counting()

  await cache.of('a', seal)
  now = 999
  expect(await cache.of('a', seal)).toBe('sealed')
  expect(seal.made).toBe(1)
  now = 1_000
  await cache.of('a', seal)
  expect(seal.made).toBe(2)
})

it('keeps no more than it may, and drops what was asked for the longest ago', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const seal = counting()
  for (const name of ['a', 'b', 'c', 'a', 'd']) await cache.of(name, seal)
  expect(seal.made).toBe(4)

  await cache.of('a', seal)
  expect(seal.made).toBe(4)
  await cache.of('b', seal)
  expect(seal.made).toBe(5)
})

it('keeps no more bytes than it may', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const small = counting()
  const large = counting('x'.repeat(99))
  await cache.of('small', small)
  await cache.of('large', large)

  await cache.of('large', large)
  await cache.of('small', small)

  expect([small.made, large.made]).toEqual([2, 1])
})

it('keeps neither failures nor nothing', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  const seal = counting()

  await expect(cache.of('a', () => Promise.reject(new Error('no key')))).rejects.toThrow('no key')
  expect(await cache.of('a', async () => undefined)).toBeUndefined()
  expect(await cache.of('a', seal)).toBe('sealed')
  expect(seal.made).toBe(1)
})

it('lets those who ask for the same wait together, and turns others away when too much is under way', async () => {
  const cache = openEnvelopeCache(limits, () => 0)
  let finish: (envelope: string) => void = () => {}
  const slow = () =>
    new Promise<string>((resolve) => {
      finish = resolve
    })

  const first = cache.of('a', slow)
  const second = cache.of('a', counting('another'))
  const other = cache.of('b', () => new Promise(() => {}))
  await expect(cache.of('c', counting())).rejects.toThrow(TooManySignatures)
  finish('sealed')

  expect(await Promise.all([first, second])).toEqual(['sealed', 'sealed'])
  expect(await cache.of('c', counting())).toBe('sealed')
  void other
})
