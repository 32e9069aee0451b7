import { describe, expect, it } from 'vitest'
import { PAGE_LIMITS } from '../../../src/web/pages/limits.js'
import { openPageCache } from '../../../src/web/pages/page-cache.js'

function openTestCache() {
  let time = 0
  let rendered = 0
  const cache = openPageCache(() => new Date(time))
  return {
    get: (key: string) => cache.get(key, async () => `rendering ${++rendered} of ${key}`),
    cache,
    pass: (ms: number) => {
      time += ms
    },
  }
}

describe('a cache of pages', () => {
  it('renders a page once for all requests of the same moment', async () => {
    const { get } = openTestCache()

    expect(await Promise.all([get('a'), get('a'), get('b')])).toEqual([
      'rendering 1 of a',
      'rendering 1 of a',
      'rendering 2 of b',
    ])
  })

  it('renders a page again when its time is over', async () => {
    const { get, pass } = openTestCache()
    await get('a')
    pass(PAGE_LIMITS.cachedMs - 1)
    expect(await get('a')).toBe('rendering 1 of a')
    pass(1)
    expect(await get('a')).toBe('rendering 2 of a')
  })

  it('does not keep a rendering that failed', async () => {
    const { get, cache } = openTestCache()
    await expect(cache.get('a', () => Promise.reject(new Error('busy')))).rejects.toThrow('busy')
    expect(await get('a')).toBe('rendering 1 of a')
  })
})
