import type { Knex } from 'knex'
import { fetchLinkedJob, type WantedEntity } from '../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../jobs/outbox/outbox.js'
import { fetchesLeftAfter } from '../../jobs/waiting/waiting-messages.js'
import { LOOKUP_LIMITS } from '../../limits.js'
import { findPostReferences } from '../../persistence/inbound/post-references.js'
import type { Pod } from '../../pod/pod.js'
import type { Entity } from '../../protocol/entities/registry.js'
import { readLinks } from '../../protocol/mentions.js'
import type { InboundMessage } from '../inbound/batch.js'
import { fetchableKind } from '../outbound/serve-entity.js'
import { isRemoteAddress } from './pod-location.js'

interface Linking {
  readonly text: string
  /** How many links have led to it. */
  readonly depth: number
  /** How many fetches it may cause, all levels together. */
  readonly fetchesLeft: number
}

/** What texts link to and nobody here knows is fetched from the pods of its authors, so that whoever follows a link finds it. */
export async function enqueueLinkedFetches(
  pod: Pod,
  transaction: Knex.Transaction,
  texts: readonly Linking[],
): Promise<void> {
  const linked = texts.flatMap((text) => linkedFrom(pod, text))
  const guidsOf = (kind: WantedEntity['type']) => linked.filter(({ type }) => type === kind).map(({ guid }) => guid)
  const { roots } = await findPostReferences(transaction, {
    posts: guidsOf('post'),
    comments: guidsOf('comment'),
    polls: guidsOf('poll'),
  })
  const known = new Set(roots.map(({ kind, guid }) => `${kind} ${guid}`))
  const unknown = linked.filter(({ type, guid }) => !known.has(`${type} ${guid}`))
  const once = new Map(unknown.map((link) => [`${link.type} ${link.guid}`, link]))
  await enqueueJobsOfKind(pod, transaction, fetchLinkedJob, [...once.values()])
}

/**
 * The links of a text that may be fetched. Links lead to texts with links, so the depth is bounded and each link carries its
 * share of the fetches that the first message may cause.
 */
function linkedFrom(pod: Pod, { text, depth, fetchesLeft }: Linking): readonly WantedEntity[] {
  if (depth >= LOOKUP_LIMITS.linkDepth) return []
  const links = new Map(readLinks(text).map((link) => [link.guid, link]))
  const wanted = [...links.values()].slice(0, LOOKUP_LIMITS.linksOfText).flatMap(({ author, type, guid }) => {
    const kind = fetchableKind(type)
    return kind === undefined || !isRemoteAddress(pod, author) ? [] : [{ author, guid, kind }]
  })
  const followed = wanted.slice(0, fetchesLeft)
  const leftForEach = Math.floor((fetchesLeft - followed.length) / followed.length)
  return followed.map(({ author, guid, kind }) => ({
    type: kind,
    guid,
    from: author,
    // A comment may be signed by the author of its post.
    ...(kind !== 'comment' && { author }),
    depth: depth + 1,
    fetchesLeft: leftForEach,
  }))
}

/**
 * How many fetches the text of a message may cause. Each time that the message waited for something, half of what was left then
 * went to the fetch of that thing (`waiting.ts`).
 */
export function fetchesLeftOf({ wanted, resumed }: Pick<InboundMessage, 'wanted' | 'resumed'>): number {
  if (wanted === undefined) return fetchesLeftAfter(resumed?.times ?? 0)
  return wanted.fetchesLeft ?? (wanted.depth === 0 ? LOOKUP_LIMITS.fetchesOfMessage - 1 : 0)
}

/** What there is to read in an entity; empty where that is nothing. */
export function textOf(entity: Entity): string {
  switch (entity.type) {
    case 'status_message':
    case 'comment':
    case 'message':
      return entity.text
    case 'conversation':
      return entity.messages.map(({ text }) => text).join('\n')
    default:
      return ''
  }
}
