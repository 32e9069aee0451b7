import type { Knex } from 'knex'
import { type FetchRequest, fetchLinkedJob } from '../../jobs/definitions.js'
import { enqueueJobsOfKind } from '../../jobs/outbox/enqueue-jobs.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { fetchesLeftAfter } from '../../jobs/waiting/request-missing-entities.js'
import { findPostReferences } from '../../persistence/inbound/post-references.js'
import { type FetchableKind, fetchableKind, isRelayableKind } from '../../protocol/entities/registry.js'
import { readLinks } from '../../protocol/mentions.js'
import type { Services } from '../../services/services.js'
import type { InboundMessage } from '../inbound/batch.js'
import { isRemoteAddress } from './pod-location.js'

interface TextWithLinks {
  readonly text: string
  /** Number of links that have led to this text. */
  readonly depth: number
  /** Number of fetches that the text may cause on all levels together. */
  readonly fetchesLeft: number
}

/** Enqueues fetches of unknown entities that texts link to, so that local users can follow the links. */
export async function enqueueLinkedFetches(
  services: Services,
  transaction: Knex.Transaction,
  texts: readonly TextWithLinks[],
): Promise<void> {
  const linkedEntities = texts.flatMap((text) => fetchableLinksOf(services, text))
  const guidsOf = (kind: FetchableKind) => linkedEntities.filter(({ type }) => type === kind).map(({ guid }) => guid)
  const { threadPosts } = await findPostReferences(transaction, {
    posts: guidsOf('post'),
    comments: guidsOf('comment'),
    polls: guidsOf('poll'),
  })
  const seenEntities = new Set(threadPosts.map(({ kind, guid }) => `${kind} ${guid}`))
  const unknown = linkedEntities.filter(({ type, guid }) => !seenEntities.has(`${type} ${guid}`))
  const once = new Map(unknown.map((link) => [`${link.type} ${link.guid}`, link]))
  await enqueueJobsOfKind(services, transaction, fetchLinkedJob, [...once.values()])
}

/**
 * The links of a text that may be fetched. Links lead to texts with links, so the depth is bounded and each link carries its
 * share of the fetches that the first message may cause.
 */
function fetchableLinksOf(services: Services, { text, depth, fetchesLeft }: TextWithLinks): readonly FetchRequest[] {
  if (depth >= REFERENCE_LIMITS.linkDepth) return []
  const links = new Map(readLinks(text).map((link) => [link.guid, link]))
  const requests = [...links.values()].slice(0, REFERENCE_LIMITS.linksOfText).flatMap(({ author, type, guid }) => {
    const kind = fetchableKind(type)
    return kind === undefined || !isRemoteAddress(services, author) ? [] : [{ author, guid, kind }]
  })
  const followedRequests = requests.slice(0, fetchesLeft)
  const leftForEach = Math.floor((fetchesLeft - followedRequests.length) / followedRequests.length)
  return followedRequests.map(({ author, guid, kind }) => ({
    type: kind,
    guid,
    from: author,
    // A relayable may be signed by the author of its post.
    ...(!isRelayableKind(kind) && { author }),
    depth: depth + 1,
    fetchesLeft: leftForEach,
  }))
}

/**
 * Number of fetches that the text of a message may still cause. Each time the message has waited, half of the rest went to the
 * fetch of the missing reference (`fetchesLeftAfter`).
 */
export function countRemainingFetches({
  fetchRequest,
  resumed,
}: Pick<InboundMessage, 'fetchRequest' | 'resumed'>): number {
  if (fetchRequest === undefined) return fetchesLeftAfter(resumed?.times ?? 0)
  return fetchRequest.fetchesLeft ?? (fetchRequest.depth === 0 ? REFERENCE_LIMITS.fetchesOfMessage - 1 : 0)
}
