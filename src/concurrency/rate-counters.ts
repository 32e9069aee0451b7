import { LRUCache } from 'lru-cache'
import { siteOfSource } from '../networks/network-source.js'

/** The limit of all /64 networks of one IPv6 /48 together, as a multiple of the limit of one. */
const SOURCES_OF_SITE = 16
/** The part of all remembered sources that one /48 may displace in one period. */
const SITE_SHARE = 10

/**
 * The limit of an IPv6 /48. It has 65 536 networks that count apart: without this limit it could use each of them once, and
 * displace all other sources.
 */
export function limitOfSite(limitOfSource: number, sources: number): number {
  const times = Math.max(1, Math.min(limitOfSource * SOURCES_OF_SITE, Math.floor(sources / SITE_SHARE)))
  return Math.max(limitOfSource, times)
}

export interface Count {
  /** Events of this source in its window, this one included. */
  readonly count: number
  /** Milliseconds until the window ends. */
  readonly endsInMs: number
  undo(): void
}

export interface WindowOptions {
  readonly perMs: number
  /** Sources that are remembered; the one that was counted longest ago is forgotten for a new one. */
  readonly sources: number
  /** Milliseconds. */
  readonly now: () => number
}

/** Counts events of each source in fixed windows of time. */
export function openWindowCounter<Source extends {}>({
  perMs,
  sources,
  now,
}: WindowOptions): (source: Source) => Count {
  const windows = openTable<Source, { count: number; readonly endsAt: number }>(sources)
  return (source) => {
    const at = now()
    const currentWindow = windows.get(source)
    const window = currentWindow && currentWindow.endsAt > at ? currentWindow : { count: 0, endsAt: at + perMs }
    if (window !== currentWindow) windows.set(source, window)
    window.count += 1
    return {
      count: window.count,
      endsInMs: window.endsAt - at,
      undo() {
        window.count -= 1
        // An entry without a count would displace that of another source.
        if (window.count === 0 && windows.get(source) === window) windows.delete(source)
      },
    }
  }
}

export interface BucketOptions {
  /** The size of a bucket, which refills evenly within a minute. */
  readonly perMinute: number
  readonly sources: number
}

/** Token buckets of network sources (`networkOfAddress`), and of their IPv6 /48s. Returns false if a bucket is empty. */
export function openTokenBuckets({ perMinute, sources }: BucketOptions): (source: string, now: number) => boolean {
  const sourceBuckets = openBuckets(perMinute, sources)
  const siteBuckets = openBuckets(limitOfSite(perMinute, sources), sources)
  return (source, now) => {
    const site = siteOfSource(source)
    if (site !== undefined && !siteBuckets.has(site, now)) return false
    if (!sourceBuckets.has(source, now)) return false
    if (site !== undefined) siteBuckets.take(site, now)
    sourceBuckets.take(source, now)
    return true
  }
}

function openBuckets(perMinute: number, sources: number) {
  const buckets = openTable<string, { readonly at: number; readonly left: number }>(sources)
  function leftOf(source: string, now: number): number {
    const { at, left } = buckets.get(source) ?? { at: now, left: perMinute }
    return Math.min(perMinute, left + ((now - at) / 60_000) * perMinute)
  }
  return {
    has: (source: string, now: number) => leftOf(source, now) >= 1,
    take: (source: string, now: number) => buckets.set(source, { at: now, left: leftOf(source, now) - 1 }),
  }
}

/** Bounded by `maxSize`, because `max` would allocate a large table at once. */
function openTable<Key extends {}, Value extends {}>(entries: number): LRUCache<Key, Value> {
  return new LRUCache({ maxSize: entries, sizeCalculation: () => 1 })
}
