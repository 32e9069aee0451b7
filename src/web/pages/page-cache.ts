import { LRUCache } from 'lru-cache'
import { openSingleFlight } from '../../concurrency/single-flight.js'
import { PAGE_LIMITS } from './limits.js'

/** Rendered pages, kept for seconds. Requests for a page that is being rendered wait for that rendering. */
export interface PageCache {
  /** The key contains all values that must not be stale. */
  get(key: string, render: () => Promise<string>): Promise<string>
}

interface Entry {
  readonly html: string
  readonly until: number
}

export function openPageCache(now: () => Date): PageCache {
  const pages = new LRUCache<string, Entry>({
    max: PAGE_LIMITS.cachedPages,
    maxSize: PAGE_LIMITS.cachedBytes,
    sizeCalculation: ({ html }) => html.length || 1,
  })
  const rendering = openSingleFlight<string, string>()

  async function renderToCache(key: string, render: () => Promise<string>): Promise<string> {
    const html = await render()
    pages.set(key, { html, until: now().getTime() + PAGE_LIMITS.cachedMs })
    return html
  }

  return {
    async get(key, render) {
      const cachedPage = pages.get(key)
      if (cachedPage !== undefined && cachedPage.until > now().getTime()) return cachedPage.html
      return rendering.run(key, () => renderToCache(key, render))
    },
  }
}
