import { openBoundedMap } from '../../bounded-map.js'
import { siteOf, sourceOf } from '../../networks/network-source.js'
import { RequestFault } from '../server/request-faults.js'

export interface RateRule {
  /** 0: as often as they like. */
  readonly times: number
  readonly perSeconds: number
  /** Sources that are remembered; the one that came first is forgotten for a new one. */
  readonly sources: number
  readonly now: () => Date
}

/**
 * Counts what one source does, in this process. Throws when it is too much: a 429 that says when to come again. What it
 * returns takes that back: it does not count in the end.
 */
export type RateLimit<Source> = (source: Source) => () => void

/** What the /64 networks of one IPv6 /48 may do together, as often as one of them. */
const SOURCES_OF_SITE = 16
/** No /48 makes the limit forget more sources than this part of those it remembers. */
const SITE_SHARE = 10

/**
 * Of network addresses. An IPv6 /48 has 65 536 networks that count apart, so it has a limit of its own: otherwise it could use
 * each of them once, and displace all other sources that the limit remembers.
 */
export function openRateLimit(rule: RateRule): RateLimit<string> {
  const { times, sources } = rule
  const limitSource = openRateLimitOf<string>(rule)
  const timesOfSite = Math.max(1, Math.min(times * SOURCES_OF_SITE, Math.floor(sources / SITE_SHARE)))
  const limitSite = openRateLimitOf<string>({ ...rule, times: times === 0 ? 0 : Math.max(times, timesOfSite) })
  return (ip) => {
    const site = siteOf(ip)
    if (site === undefined) return limitSource(sourceOf(ip))
    const takeBackSite = limitSite(site)
    try {
      const takeBackSource = limitSource(sourceOf(ip))
      return () => {
        takeBackSource()
        takeBackSite()
      }
    } catch (error) {
      takeBackSite() // one network that asks too often must not use up what the others of its /48 may do
      throw error
    }
  }
}

export function openRateLimitOf<Source>({ times, perSeconds, sources, now }: RateRule): RateLimit<Source> {
  const windows = openBoundedMap<Source, { count: number; readonly endsAt: number }>({ entries: sources })
  return (source) => {
    if (times === 0) return () => undefined
    const at = now().getTime()
    const known = windows.get(source)
    const window = known && known.endsAt > at ? known : { count: 0, endsAt: at + perSeconds * 1_000 }
    if (window !== known) windows.set(source, window)
    window.count += 1
    if (window.count > times) throw tooMany(Math.ceil((window.endsAt - at) / 1_000))
    return () => {
      window.count -= 1
      // What is taken back leaves no entry either: it would displace that of another source.
      if (window.count === 0 && windows.get(source) === window) windows.delete(source)
    }
  }
}

export function tooMany(seconds: number): RequestFault {
  const text = `That was too often. Please try again in ${inWords(seconds)}.`
  return new RequestFault(429, text, {
    headers: { 'retry-after': String(seconds) },
    fields: { error: 'slow_down', error_description: text },
  })
}

function inWords(seconds: number): string {
  if (seconds < 120) return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
  return `${Math.ceil(seconds / 60)} minutes`
}
