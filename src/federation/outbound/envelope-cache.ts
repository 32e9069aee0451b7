import { LRUCache } from 'lru-cache'
import { openSingleFlight } from '../../concurrency/single-flight.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'

/** Limits for one process: number, bytes and age of the kept envelopes. */
export interface EnvelopeCacheLimits {
  readonly envelopes: number
  readonly bytes: number
  readonly ageMs: number
  /** Concurrent signatures; a request beyond this number gets a 503. */
  readonly concurrentSignatures: number
}

/** More signatures are requested than the threads can make in time. */
export class TooManySignatures extends Error {
  override name = 'TooManySignatures'
}

export interface EnvelopeCache {
  /** Returns the cached envelope of this name, or signs and caches it. */
  getOrSign(name: string, sign: () => Promise<string | undefined>): Promise<string | undefined>
}

interface CachedEnvelope {
  readonly envelope: string
  readonly expiresAt: number
}

/** Caches signed envelopes: a signature costs a thread several milliseconds, and anyone may request an entity again and again. */
export function openEnvelopeCache(limits: EnvelopeCacheLimits, now = () => performance.now()): EnvelopeCache {
  const cachedEnvelopes = new LRUCache<string, CachedEnvelope>({
    max: limits.envelopes,
    maxSize: limits.bytes,
    sizeCalculation: ({ envelope }) => envelopeBytes(envelope) || 1,
  })
  const runningSignatures = openSingleFlight<string, string | undefined>()

  async function signToCache(name: string, sign: () => Promise<string | undefined>): Promise<string | undefined> {
    const envelope = await sign()
    if (envelope !== undefined) cachedEnvelopes.set(name, { envelope, expiresAt: now() + limits.ageMs })
    return envelope
  }

  return {
    async getOrSign(name, sign) {
      const cachedEnvelope = cachedEnvelopes.get(name)
      if (cachedEnvelope !== undefined && cachedEnvelope.expiresAt > now()) return cachedEnvelope.envelope
      if (!runningSignatures.has(name) && runningSignatures.size >= limits.concurrentSignatures) {
        throw new TooManySignatures('Too many envelopes are being signed. Try again later.')
      }
      return runningSignatures.run(name, () => signToCache(name, sign))
    },
  }
}
