import { limitOfSite, openWindowCounter } from '../../concurrency/rate-counters.js'
import { networkOfAddress, siteOfNetwork } from '../../networks/network-source.js'
import { RequestFault } from '../server/request-faults.js'
import { countRateLimited, type RateLimitName } from './rejection-metrics.js'

export interface RateRule {
  readonly limit: RateLimitName
  /** 0: unlimited. */
  readonly times: number
  readonly perSeconds: number
  /** Sources kept in memory; a new one replaces the least recently counted. */
  readonly sources: number
  readonly now: () => Date
}

/** Counts a request of a source, in this process. Throws a 429 with `retry-after` beyond the limit. Returns how to undo it. */
export type RateLimit<Source> = (source: Source) => () => void

/** Limits network addresses: each IPv4 address, each IPv6 /64, and the networks of an IPv6 /48 together. */
export function openRateLimit(rule: RateRule): RateLimit<string> {
  const { times, sources } = rule
  const limitSource = openKeyedRateLimit<string>(rule)
  const limitSite = openKeyedRateLimit<string>({ ...rule, times: times === 0 ? 0 : limitOfSite(times, sources) })
  return (ip) => {
    const site = siteOfNetwork(ip)
    if (site === undefined) return limitSource(networkOfAddress(ip))
    const undoSite = limitSite(site)
    try {
      const undoSource = limitSource(networkOfAddress(ip))
      return () => {
        undoSource()
        undoSite()
      }
    } catch (error) {
      undoSite() // a network beyond its own limit must not use up the limit of its /48
      throw error
    }
  }
}

export function openKeyedRateLimit<Source extends {}>({
  limit,
  times,
  perSeconds,
  sources,
  now,
}: RateRule): RateLimit<Source> {
  if (times === 0) return () => () => undefined
  const count = openWindowCounter<Source>({ perMs: perSeconds * 1_000, sources, now: () => now().getTime() })
  return (source) => {
    const usage = count(source)
    if (usage.count > times) {
      countRateLimited(limit)
      throw tooMany(Math.ceil(usage.endsInMs / 1_000))
    }
    return usage.undo
  }
}

export function tooMany(seconds: number): RequestFault {
  const text = `Too many requests. Please try again in ${inWords(seconds)}.`
  return new RequestFault(429, text, {
    headers: { 'retry-after': String(seconds) },
    fields: { error: 'slow_down', error_description: text },
    text: (t) =>
      seconds < MAX_SHOWN_SECONDS
        ? t('error.too_many', { seconds })
        : t('error.too_many_minutes', { minutes: Math.ceil(seconds / 60) }),
  })
}

/** Longer waits are said in minutes. */
const MAX_SHOWN_SECONDS = 120

function inWords(seconds: number): string {
  if (seconds < MAX_SHOWN_SECONDS) return `${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
  return `${Math.ceil(seconds / 60)} minutes`
}
