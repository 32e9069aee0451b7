import type { RECEIVE_LIMITS } from '../../limits.js'
import { siteOf } from '../../networks/network-source.js'
import type { JobQueues } from '../queues/job-queues.js'
import type { QueueName } from '../queues/queue-names.js'
import { type Ledger, openLedger, type Packed } from './queue-size-estimate.js'

const INBOUND = ['inbound', 'inbound-private'] as const satisfies readonly QueueName[]
type InboundQueue = (typeof INBOUND)[number]

/** Why a message is not let in now; either way it is welcome later. */
export type Refusal = 'full' | 'over_share'

export type BacklogLimits = Pick<
  { readonly [Name in keyof typeof RECEIVE_LIMITS]: number },
  | 'queuedMessages'
  | 'fairFromMessages'
  | 'fairFromBytes'
  | 'messagesApart'
  | 'bytesApart'
  | 'messagesOfSource'
  | 'bytesPercentOfSource'
  | 'sharesOfSite'
  | 'sources'
  | 'lookEveryMs'
> & {
  /** Gathered and queued. */
  readonly bytes: number
}

/** Whoever brings a message; the address, if there is one, is only looked at when it matters. */
export interface Source {
  readonly ip: string | undefined
}

interface BacklogFacts {
  /** In this process: bodies that come in, and those on their way to the queue. */
  readonly gatheredBytes: number
  /** As far as this process can tell; the queue counts jobs. */
  readonly queuedBytes: number
  readonly queuedMessages: number
}

/** What has come in and is not taken in yet. */
export interface Backlog {
  /** Asked before a message is read. */
  refusalOf(source: Source): Refusal | undefined
  /** Bytes of this source that this process begins to hold, or no longer holds where they are negative. */
  hold(bytes: number, source: Source): void
  /** Counts a message of this source, and returns whether it has to let those of others pass. */
  isApart(source: Source, bytes: number): boolean
  /** Adds a job to the queue, and counts it as long as it may be there. */
  add(queue: InboundQueue, job: Packed, add: () => Promise<void>): Promise<void>
  facts(): BacklogFacts
  close(): void
}

/**
 * An estimate: the length of the queue is looked at once a second as long as there is something in it, and what this process
 * has added says how large its jobs are.
 */
export function openBacklog(jobs: Pick<JobQueues, 'counts' | 'hasRoom'>, limits: BacklogLimits): Backlog {
  const ledgers: Readonly<Record<InboundQueue, Ledger>> = { inbound: openLedger(), 'inbound-private': openLedger() }
  /** What each source has sent since the queue was last short. */
  const sent = new Map<string, Packed>()
  /** Bytes of each source that this process holds. */
  const held = new Map<string, number>()
  const bytesOfSource = (limits.bytes * limits.bytesPercentOfSource) / 100
  let gathered = 0
  let lookedAt = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  let hasRoom = true

  function queued(): Packed {
    const [open, closed] = [ledgers.inbound.total(), ledgers['inbound-private'].total()]
    return { messages: open.messages + closed.messages, bytes: open.bytes + closed.bytes }
  }

  /** A few large messages are as much work as many small ones. */
  function isLong(): boolean {
    const { messages, bytes } = queued()
    return messages > limits.fairFromMessages || bytes > limits.fairFromBytes
  }

  /** A source, and for IPv6 the /48 around it, which has a few shares together. */
  function countedFor(source: Source): { readonly own: Counted; readonly site?: Counted } | undefined {
    const name = neighbourhoodOf(source)
    if (name === undefined) return undefined
    const site = siteOf(source.ip ?? '')
    return {
      own: { name, shares: 1 },
      ...(site !== undefined && { site: { name: site, shares: limits.sharesOfSite } }),
    }
  }

  function hasHadItsShare({ name, shares }: Counted): boolean {
    const { messages, bytes } = sent.get(name) ?? NOTHING
    return messages >= shares * limits.messagesOfSource || bytes + (held.get(name) ?? 0) >= shares * bytesOfSource
  }

  function isOver({ name, shares }: Counted, size: number): boolean {
    const { messages, bytes } = sent.get(name) ?? NOTHING
    return messages >= shares * limits.messagesApart || bytes + size > shares * limits.bytesApart
  }

  /** Counts a message, and returns whether there were enough of them before. */
  function countSent(counted: Counted, size: number): boolean {
    const { name } = counted
    const before = sent.get(name)
    if (before === undefined && sent.size >= limits.sources) return false
    const isApart = isOver(counted, size)
    const { messages, bytes } = before ?? NOTHING
    sent.set(name, { messages: messages + 1, bytes: bytes + size })
    return isApart
  }

  /** The first message brings the first look at once: a process may begin before a long queue. */
  function keepLooking(): void {
    if (timer !== undefined || isClosed) return
    const delay = lookedAt + limits.lookEveryMs - performance.now()
    timer = setTimeout(look, Math.max(0, delay)).unref()
  }

  async function look(): Promise<void> {
    lookedAt = performance.now()
    await Promise.all([lookForRoom(), ...INBOUND.map(lookAt)])
    timer = undefined
    if (!isLong()) sent.clear()
    const { messages } = queued()
    if (messages > 0 || !hasRoom) keepLooking()
  }

  async function lookForRoom(): Promise<void> {
    hasRoom = await jobs.hasRoom().catch(() => hasRoom)
  }

  async function lookAt(queue: InboundQueue): Promise<void> {
    const seen = ledgers[queue].look()
    try {
      const { waiting, active, delayed } = await jobs.counts(queue)
      seen(waiting + active + delayed)
    } catch {
      // Out of reach: what was known stands until it is back, and nothing gets in meanwhile.
    }
  }

  return {
    refusalOf(source) {
      keepLooking()
      const { messages, bytes } = queued()
      if (!hasRoom || gathered + bytes >= limits.bytes || messages >= limits.queuedMessages) return 'full'
      if (sent.size === 0 && held.size === 0) return undefined
      const { own, site } = countedFor(source) ?? {}
      return [own, site].some((counted) => counted && hasHadItsShare(counted)) ? 'over_share' : undefined
    },

    hold(bytes, source) {
      gathered += bytes
      const { own, site } = countedFor(source) ?? {}
      for (const name of [own?.name, site?.name]) {
        if (name === undefined) continue
        const left = (held.get(name) ?? 0) + bytes
        if (left > 0) held.set(name, left)
        else held.delete(name)
      }
    },

    isApart(source, size) {
      if (!isLong()) return false
      const { own, site } = countedFor(source) ?? {}
      if (own === undefined) return false
      // Once a /48 is apart, its 65 536 networks take no more places among the sources.
      if (site !== undefined && isOver(site, size)) {
        countSent(site, size)
        return true
      }
      // What one network sends beyond its share is not counted for its neighbours.
      return countSent(own, size) || (site !== undefined && countSent(site, size))
    },

    async add(queue, job, add) {
      const entry = ledgers[queue].add(job)
      keepLooking()
      try {
        await add()
        entry.arrived()
      } catch (error) {
        entry.failed()
        throw error
      }
    },

    facts() {
      const { messages, bytes } = queued()
      return { gatheredBytes: gathered, queuedBytes: bytes, queuedMessages: messages }
    },

    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

/** Whom messages are counted for, and how many shares that is. */
interface Counted {
  readonly name: string
  readonly shares: number
}

const NOTHING: Packed = { messages: 0, bytes: 0 }

/** A proxy that does not tell whom it stands for: everybody would be taken for one. */
const NOT_PUBLIC = /^(::ffff:)?(127|10|192\.168|172\.(1[6-9]|2[0-9]|3[01]))\.|^::1$|^f[cd]|^fe80:/i

/** Who has one address of IPv6 has the 2^64 beside it too. Undefined: not to be counted. */
export function neighbourhoodOf({ ip }: Source): string | undefined {
  if (!ip || NOT_PUBLIC.test(ip)) return undefined // empty behind a socket of this machine
  if (!ip.includes(':')) return ip
  if (ip.includes('.')) return ip.slice(ip.lastIndexOf(':') + 1)
  const [head = '', tail = ''] = ip.split('::')
  const first = head.split(':').filter(Boolean)
  const last = tail.split(':').filter(Boolean)
  const between = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => '0')
  return [...first, ...between, ...last].slice(0, 4).join(':')
}
