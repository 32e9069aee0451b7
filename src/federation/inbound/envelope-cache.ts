import { openBoundedMap } from '../../bounded-map.js'

/** How many envelopes a process keeps, in how many bytes, and for how long. */
export interface EnvelopeCacheLimits {
  readonly envelopes: number
  readonly bytes: number
  readonly ageMs: number
  /** Signatures on their way; who comes then is told to come back. */
  readonly underWay: number
}

/** More is being signed than threads can do in a reasonable time. */
export class TooManySignatures extends Error {
  override name = 'TooManySignatures'
}

export interface EnvelopeCache {
  /** The envelope of this name, or the one that `seal` makes; who asks for the same meanwhile waits for it. */
  of(name: string, seal: () => Promise<string | undefined>): Promise<string | undefined>
}

interface Kept {
  readonly envelope: string
  readonly until: number
}

/** Each signature costs a thread several milliseconds, and anybody may ask for one; asked again, it costs nothing. */
export function openEnvelopeCache(limits: EnvelopeCacheLimits, now = () => performance.now()): EnvelopeCache {
  const kept = openBoundedMap<string, Kept>({
    entries: limits.envelopes,
    bytes: limits.bytes,
    sizeOf: ({ envelope }) => envelope.length,
  })
  const underWay = new Map<string, Promise<string | undefined>>()

  async function make(name: string, seal: () => Promise<string | undefined>): Promise<string | undefined> {
    try {
      const envelope = await seal()
      if (envelope !== undefined) kept.set(name, { envelope, until: now() + limits.ageMs })
      return envelope
    } finally {
      underWay.delete(name)
    }
  }

  return {
    async of(name, seal) {
      const found = kept.get(name)
      if (found !== undefined && found.until > now()) {
        kept.set(name, found) // the longest unused goes first
        return found.envelope
      }
      const shared = underWay.get(name)
      if (shared !== undefined) return shared
      if (underWay.size >= limits.underWay) throw new TooManySignatures('Too many envelopes are being signed.')
      const making = make(name, seal)
      underWay.set(name, making)
      return making
    },
  }
}
