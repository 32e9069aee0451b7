import { openBoundedMap } from '../../bounded-map.js'
import { PAGE_LIMITS } from '../../limits.js'

/** Rendered pages, kept for seconds. Requests for a page that is being rendered wait for that rendering. */
export interface PageCache {
  /** The key says everything that must not be stale. */
  get(key: string, render: () => Promise<string>): Promise<string>
}

interface Entry {
  readonly html: string
  readonly until: number
}

export function openPageCache(now: () => Date): PageCache {
  const pages = openBoundedMap<string, Entry>({
    entries: PAGE_LIMITS.cachedPages,
    bytes: PAGE_LIMITS.cachedBytes,
    sizeOf: ({ html }) => html.length,
  })
  const pending = new Map<string, Promise<string>>()

  async function renderAndKeep(key: string, render: () => Promise<string>): Promise<string> {
    const html = await render()
    pages.set(key, { html, until: now().getTime() + PAGE_LIMITS.cachedMs })
    return html
  }

  return {
    async get(key, render) {
      const known = pages.get(key)
      if (known !== undefined && known.until > now().getTime()) return known.html
      const running = pending.get(key)
      if (running !== undefined) return running
      const rendering = renderAndKeep(key, render).finally(() => pending.delete(key))
      pending.set(key, rendering)
      return rendering
    },
  }
}
