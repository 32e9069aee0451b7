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
  const kept = new Map<string, Kept>()
  const underWay = new Map<string, Promise<string | undefined>>()
  let bytes = 0

  function drop(name: string): void {
    bytes -= kept.get(name)?.envelope.length ?? 0
    kept.delete(name)
  }

  function keep(name: string, envelope: string): void {
    drop(name)
    kept.set(name, { envelope, until: now() + limits.ageMs })
    bytes += envelope.length
    for (const oldest of kept.keys()) {
      if (kept.size <= limits.envelopes && bytes <= limits.bytes) return
      drop(oldest)
    }
  }

  async function make(name: string, seal: () => Promise<string | undefined>): Promise<string | undefined> {
    try {
      const envelope = await seal()
      if (envelope !== undefined) keep(name, envelope)
      return envelope
    } finally {
      underWay.delete(name)
    }
  }

  return {
    async of(name, seal) {
      const found = kept.get(name)
      if (found !== undefined && found.until > now()) {
        kept.delete(name)
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
