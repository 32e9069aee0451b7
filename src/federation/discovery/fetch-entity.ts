import type { QueryBuilder } from 'objection'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import type { FetchRequest } from '../../jobs/definitions.js'
import { isFetchable, splitEntityKey, toFetchable } from '../../jobs/waiting/entity-key.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { retryAfterLockTimeout } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import { isAddress } from '../../protocol/address.js'
import { type FetchableKind, isRelayableKind, readLinkedText } from '../../protocol/entities/registry.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { isGuid } from '../../protocol/values.js'
import type { RemotePodClient } from '../../services/remote-pod-client.js'
import type { Services } from '../../services/services.js'
import type { InboundMessage, WaitingMessage } from '../inbound/batch.js'
import { receiveBatch } from '../inbound/receive-batch.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { discoverPerson } from './discover-person.js'
import { countRemainingFetches } from './linked-entities.js'
import { buildRequestOrigin, isThisPod, parsePodHost } from './pod-location.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

export interface FetchOptions {
  /** Whether the entity is fetched although a fetch has failed in the last minute, as retries do. */
  readonly ignoresRecentFailures?: boolean
  /** Milliseconds for the whole fetch. */
  readonly withinMs?: number
}

/** The state of a fetch that causes further fetches. */
interface FetchChain {
  /** The guids of the running fetches, from the first to this one. */
  readonly guids: readonly string[]
  /** The end of the time for the whole chain, by `performance.now()`. */
  readonly until: number
}

/**
 * Returns the requested post, or the post of the requested poll or comment: from the database, or fetched from another pod and
 * received like any message. Any failure ends as `NotFetchable` with the reason.
 */
export async function fetchEntity(
  services: Services,
  fetchRequest: FetchRequest,
  options: FetchOptions = {},
): Promise<Post> {
  const until = performance.now() + (options.withinMs ?? REMOTE_LIMITS.exchangeMs)
  const knownPost = fetchRequest.isUnreadable ? undefined : await findStoredPost(services, fetchRequest)
  if (knownPost !== undefined) return knownPost
  // The requested pods are part of the key: the failure of one pod says nothing about another one.
  const key = `${fetchRequest.isUnreadable ?? ''}${fetchRequest.type}:${fetchRequest.guid} ${fetchRequest.from} ${fetchRequest.orFrom} ${fetchRequest.author}`
  return sharedFetches(services.remotePods, openSharedLookups<Post>).run(
    key,
    () => fetchFromEither(services, fetchRequest, { guids: [], until }),
    { ...options, now: services.now },
  )
}

/** Shared fetches, one state for each set of open services. */
const sharedFetches = stateByOwner<RemotePodClient, SharedLookups<Post>>()

async function findStoredPost({ db }: Services, { type, guid }: FetchRequest): Promise<Post | undefined> {
  return postQueries[type](Post.query(db), guid).withGraphFetched('author').select('posts.*')
}

type PostQuery = QueryBuilder<Post, Post | undefined>

const postQueries: Readonly<Record<FetchableKind, (posts: QueryBuilder<Post>, guid: string) => PostQuery>> = {
  post: (posts, guid) => posts.findOne({ guid }),
  poll: (posts, guid) => posts.findOne({ 'poll.guid': guid }).joinRelated('poll'),
  comment: (posts, guid) => posts.findOne({ 'comments.guid': guid }).joinRelated('comments'),
}

/** Fetches from the first pod, and from the second one if that fails. */
async function fetchFromEither(
  services: Services,
  fetchRequest: FetchRequest,
  { guids, until }: FetchChain,
): Promise<Post> {
  if (!isGuid(fetchRequest.guid)) throw notFetchable('this is not a guid')
  if (guids.includes(fetchRequest.guid)) throw notFetchable(`${fetchRequest.guid} refers to itself`)
  if (fetchRequest.depth > REFERENCE_LIMITS.chainDepth)
    throw notFetchable(`${fetchRequest.guid} is too deep in a chain of references`)
  const chain = { guids: [...guids, fetchRequest.guid], until }
  const { from, orFrom } = fetchRequest
  try {
    return await fetchFrom(services, fetchRequest, from, chain)
  } catch (error) {
    if (orFrom === undefined || !(error instanceof ProtocolError)) throw error
    return fetchFrom(services, fetchRequest, orFrom, chain)
  }
}

async function fetchFrom(
  services: Services,
  fetchRequest: FetchRequest,
  from: string,
  chain: FetchChain,
): Promise<Post> {
  const origin = await fetchOriginOf(services, from, chain)
  const envelope = await requestEnvelope(
    services,
    `${origin}/fetch/${fetchRequest.type}/${encodeURIComponent(fetchRequest.guid)}`,
    chain.until,
  )
  await receiveWithReferences(services, { envelope, acceptedAt: services.now(), fetchRequest }, chain)
  const post = fetchRequest.isUnreadable ? undefined : await findStoredPost(services, fetchRequest)
  if (post === undefined) throw notFetchable(`${fetchRequest.guid} was fetched but not stored`)
  return post
}

/** The origin of the pod to fetch from. Throws for this pod and for blocked pods. */
async function fetchOriginOf(services: Services, from: string, chain: FetchChain): Promise<string> {
  if (isAddress(from)) {
    const person = await findOrDiscoverPerson(services, from, chain)
    if (!person.pod) throw notFetchable(`${from} is a local person, and there is no such entity`)
    const origin = buildRequestOrigin(person.pod)
    if (origin === undefined || person.pod.blockedAt !== null)
      throw notFetchable(`the pod of ${from} is blocked or has no valid host`)
    return origin
  }
  const url = isUrl(`https://${from}/`) ? new URL(`https://${from}/`) : undefined
  if (
    url === undefined ||
    isThisPod(services.config, parsePodHost(url)) ||
    (await RemotePod.isBlocked(services.db, parsePodHost(url)))
  ) {
    throw notFetchable(`${from} is this pod, a blocked pod or not a valid host`)
  }
  return url.origin
}

async function findOrDiscoverPerson(services: Services, address: string, { until }: FetchChain): Promise<Person> {
  const storedPerson = await Person.byAddress(services.db, address)
  if (storedPerson !== undefined) return storedPerson
  try {
    return await discoverPerson(services, address, { withinMs: millisecondsUntil(until) })
  } catch (error) {
    throw error instanceof ProtocolError ? notFetchable(error.message, error) : error
  }
}

async function requestEnvelope({ remotePods }: Services, url: string, until: number): Promise<string> {
  try {
    const { status, body } = await remotePods.get(url, {
      accept: 'application/magic-envelope+xml',
      maxBytes: REMOTE_LIMITS.fetchBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: millisecondsUntil(until),
    })
    if (status < 200 || status > 299) throw notFetchable(`${url} was answered with status ${status}`)
    return body.toString()
  } catch (error) {
    throw error instanceof RemotePodError ? notFetchable(error.message, error) : error
  }
}

/** Receives a fetched entity like any message. Missing references are fetched first, each once. */
async function receiveWithReferences(
  services: Services,
  message: InboundMessage & { readonly fetchRequest: FetchRequest },
  chain: FetchChain,
): Promise<void> {
  const fetchedKeys = new Set<string>()
  let { fetchRequest } = message
  for (;;) {
    const { waiting, rejected, ignored } = await retryAfterLockTimeout(() =>
      receiveBatch(services, [{ ...message, fetchRequest }]),
    )
    const [rejection] = rejected
    if (rejection !== undefined) throw notFetchable(`${rejection.fault}: ${rejection.reason}`)
    const [ignoredMessage] = ignored
    if (ignoredMessage !== undefined) throw notFetchable(ignoredMessage.reason)
    const [missing] = waiting
    if (missing === undefined) return
    if (fetchedKeys.has(missing.waitsFor)) throw notFetchable(`${missing.waitsFor} was fetched but not stored`)
    fetchedKeys.add(missing.waitsFor)
    fetchRequest = { ...fetchRequest, fetchesLeft: await fetchMissing(services, missing, chain) }
  }
}

/** Fetches a missing reference. Returns the number of fetches that the message may still cause. */
async function fetchMissing(services: Services, missing: WaitingMessage, chain: FetchChain): Promise<number> {
  const { inbound, waitsFor, fetchFrom, fallbackFetchFrom, message } = missing
  const fetchesLeft = countRemainingFetches(inbound)
  const [kind, name] = splitEntityKey(waitsFor)
  if (fetchFrom === undefined) throw notFetchable(`no pod is known that may have ${waitsFor}`)
  if (kind === 'person') {
    // Except for relayables, an envelope with two people would be rejected. So it must not cause lookups of them.
    const { sender, author } = peekEnvelope(inbound.envelope)
    const { fetchRequest } = inbound
    const mayBeRelayed = fetchRequest !== undefined && isRelayableKind(fetchRequest.type)
    const isPlausible = (sender === author || mayBeRelayed) && (fetchRequest?.author ?? author) === author
    if (!isPlausible) throw notFetchable(`sender ${sender ?? '(none)'} may not send an entity by ${author ?? '(none)'}`)
    await findOrDiscoverPerson(services, fetchFrom, chain)
    return fetchesLeft
  }
  if (!isFetchable(kind)) throw notFetchable(`${waitsFor} cannot be fetched, it can only be received`)
  if (fetchesLeft < 1) throw notFetchable(`${waitsFor} exceeds the number of fetches that one message may cause`)
  const depth = (inbound.fetchRequest?.depth ?? 0) + 1
  // Half of the fetches are kept for the links in the text of the message. A reshare has no text, so it keeps none.
  const reservedFetches =
    message === undefined || readLinkedText(message.entity) === '' ? 0 : Math.floor((fetchesLeft - 1) / 2)
  const fetchRequest = {
    ...toFetchable(kind),
    guid: name,
    from: fetchFrom,
    orFrom: fallbackFetchFrom,
    author: missing.author,
    depth,
    ...(inbound.fetchRequest?.isForArchive && { isForArchive: true as const }),
  }
  await fetchFromEither(services, { ...fetchRequest, fetchesLeft: fetchesLeft - 1 - reservedFetches }, chain)
  return reservedFetches
}

function millisecondsUntil(until: number): number {
  return Math.max(1, until - performance.now())
}

function notFetchable(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('NotFetchable', reason, { cause })
}
