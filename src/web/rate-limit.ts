import { isIPv6 } from 'node:net'
import { openBoundedMap } from '../bounded-map.js'
import { RequestFault } from './faults.js'

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

/** Of network addresses. */
export function openRateLimit(rule: RateRule): RateLimit<string> {
  const limit = openRateLimitOf<string>(rule)
  return (ip) => limit(sourceOf(ip))
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
    }
  }
}

/** Of IPv6 whoever has one address has at least 2⁶⁴ of them. */
export function sourceOf(ip: string): string {
  if (!isIPv6(ip)) return ip
  const mapped = /^::ffff:([0-9.]+)$/i.exec(ip)?.[1]
  if (mapped !== undefined) return mapped
  const [head = '', tail] = (ip.split('%')[0] ?? '').split('::')
  const groups = head.split(':').filter((group) => group !== '')
  const after = tail?.split(':').filter((group) => group !== '') ?? []
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length)
  return [...groups, ...Array<string>(zeros).fill('0'), ...after]
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
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
