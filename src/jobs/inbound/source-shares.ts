import { siteOfNetwork } from '../../networks/network-source.js'
import type { PackedSize } from './queue-size-estimate.js'

/** The sender of a message; its address is only read when it matters. */
export interface NetworkSource {
  readonly ip: string | undefined
}

interface ShareLimits {
  /** Maximum of one source while the queue is long; beyond it, its messages are refused. */
  readonly messagesOfSource: number
  readonly bytesOfSource: number
  /** Share of one source while the queue is long; beyond it, its messages get separate jobs. */
  readonly messagesPerShare: number
  readonly bytesPerShare: number
  /** Shares of an IPv6 /48 together. */
  readonly sharesOfSite: number
  /** Maximum number of counted sources and sites. */
  readonly sources: number
}

/** Messages and bytes of each network source while the queue is long, and the bytes that this process holds. */
export interface SourceShares {
  isUsedUp(source: NetworkSource): boolean
  /** Adds bytes that this process holds; a negative number removes them. */
  hold(source: NetworkSource, bytes: number): void
  /** Counts a message. Returns true if it needs a separate job. */
  count(source: NetworkSource, bytes: number): boolean
  /** Resets the counters of sent messages; held bytes stay. */
  clearSent(): void
}

/** A source or site for which messages are counted, and its number of shares. */
interface CountedSource {
  readonly name: string
  readonly shares: number
}

const NOTHING: PackedSize = { messages: 0, bytes: 0 }

export function openSourceShares(limits: ShareLimits): SourceShares {
  const sent = new Map<string, PackedSize>()
  /** Bytes. */
  const heldBytes = new Map<string, number>()

  /** A source, and for IPv6 the /48 around it, which has a few shares together. */
  function countedFor(source: NetworkSource): { readonly own?: CountedSource; readonly site?: CountedSource } {
    const name = networkOf(source)
    if (name === undefined) return {}
    const site = siteOfNetwork(source.ip ?? '')
    return {
      own: { name, shares: 1 },
      ...(site !== undefined && { site: { name: site, shares: limits.sharesOfSite } }),
    }
  }

  function hasUsedUp({ name, shares }: CountedSource): boolean {
    const { messages, bytes } = sent.get(name) ?? NOTHING
    return (
      messages >= shares * limits.messagesOfSource ||
      bytes + (heldBytes.get(name) ?? 0) >= shares * limits.bytesOfSource
    )
  }

  function isBeyondShare({ name, shares }: CountedSource, size: number): boolean {
    const { messages, bytes } = sent.get(name) ?? NOTHING
    return messages >= shares * limits.messagesPerShare || bytes + size > shares * limits.bytesPerShare
  }

  /** Counts a message. Returns true if the share was used up before. */
  function countSent(counted: CountedSource, size: number): boolean {
    const { name } = counted
    const before = sent.get(name)
    if (before === undefined && sent.size >= limits.sources) return false
    const isOverShare = isBeyondShare(counted, size)
    const { messages, bytes } = before ?? NOTHING
    sent.set(name, { messages: messages + 1, bytes: bytes + size })
    return isOverShare
  }

  return {
    isUsedUp(source) {
      if (sent.size === 0 && heldBytes.size === 0) return false
      const { own, site } = countedFor(source)
      return [own, site].some((counted) => counted && hasUsedUp(counted))
    },

    hold(source, bytes) {
      const { own, site } = countedFor(source)
      for (const name of [own?.name, site?.name]) {
        if (name === undefined) continue
        const remainingBytes = (heldBytes.get(name) ?? 0) + bytes
        if (remainingBytes > 0) heldBytes.set(name, remainingBytes)
        else heldBytes.delete(name)
      }
    },

    count(source, size) {
      const { own, site } = countedFor(source)
      if (own === undefined) return false
      // Once a /48 needs separate jobs, its 65 536 networks take no more places among the sources.
      if (site !== undefined && isBeyondShare(site, size)) {
        countSent(site, size)
        return true
      }
      // Messages of one network beyond its share are not counted for its neighbours.
      return countSent(own, size) || (site !== undefined && countSent(site, size))
    },

    clearSent: () => sent.clear(),
  }
}

/** Behind a proxy that does not forward addresses, all senders would be one source. */
const NOT_PUBLIC = /^(::ffff:)?(127|10|192\.168|172\.(1[6-9]|2[0-9]|3[01]))\.|^::1$|^f[cd]|^fe80:/i

/** The network of an address: for IPv6 the /64, of which a sender has all addresses. Undefined: not to be counted. */
export function networkOf({ ip }: NetworkSource): string | undefined {
  if (!ip || NOT_PUBLIC.test(ip)) return undefined // empty behind a local socket
  if (!ip.includes(':')) return ip
  if (ip.includes('.')) return ip.slice(ip.lastIndexOf(':') + 1)
  const [head = '', tail = ''] = ip.split('::')
  const first = head.split(':').filter(Boolean)
  const last = tail.split(':').filter(Boolean)
  const zeroGroups = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0')
  return [...first, ...zeroGroups, ...last].slice(0, 4).join(':')
}
