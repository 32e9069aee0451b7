import { LRUCache } from 'lru-cache'
import { openSingleFlight } from '../../throttling/single-flight.js'

/** How many envelopes a process keeps, in how many bytes, and for how long. */
export interface EnvelopeCacheLimits {
  readonly envelopes: number
  readonly bytes: number
  readonly ageMs: number
  /** Signatures that are made at the same time; a request beyond this gets a 503. */
  readonly underWay: number
}

/** More signatures are requested than the threads can make in a reasonable time. */
export class TooManySignatures extends Error {
  override name = 'TooManySignatures'
}

export interface EnvelopeCache {
  /** The kept envelope of this name, or the one that `seal` makes. */
  of(name: string, seal: () => Promise<string | undefined>): Promise<string | undefined>
}

interface Kept {
  readonly envelope: string
  readonly until: number
}

/** A signature costs a thread several milliseconds, and anyone may request one; a repeated request costs nothing. */
export function openEnvelopeCache(limits: EnvelopeCacheLimits, now = () => performance.now()): EnvelopeCache {
  const kept = new LRUCache<string, Kept>({
    max: limits.envelopes,
    maxSize: limits.bytes,
    sizeCalculation: ({ envelope }) => envelope.length || 1,
  })
  const signing = openSingleFlight<string, string | undefined>()

  async function make(name: string, seal: () => Promise<string | undefined>): Promise<string | undefined> {
    const envelope = await seal()
    if (envelope !== undefined) kept.set(name, { envelope, until: now() + limits.ageMs })
    return envelope
  }

  return {
    async of(name, seal) {
      const found = kept.get(name)
      if (found !== undefined && found.until > now()) return found.envelope
      if (!signing.has(name) && signing.size >= limits.underWay) {
        throw new TooManySignatures('Too many envelopes are being signed.')
      }
      return signing.run(name, () => make(name, seal))
    },
  }
}
