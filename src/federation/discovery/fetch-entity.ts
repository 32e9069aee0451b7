import type { QueryBuilder } from 'objection'
import type { WantedEntity } from '../../jobs/definitions.js'
import { isFetchable, splitEntityKey, toFetchable } from '../../jobs/waiting/entity-key.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { retryAfterLockTimeout } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import { Post } from '../../persistence/models/post.js'
import type { Pod, RemotePods } from '../../pod/pod.js'
import { isAddress } from '../../protocol/address.js'
import { type FetchableKind, isRelayableKind, readLinkedText } from '../../protocol/entities/registry.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { isGuid } from '../../protocol/values.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import type { InboundMessage, WaitingMessage } from '../inbound/batch.js'
import { receiveBatch } from '../inbound/receive-batch.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { discoverPerson } from './discover-person.js'
import { countRemainingFetches } from './linked-entities.js'
import { buildRequestOrigin, isThisPod, parsePodHost } from './pod-location.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

export interface FetchOptions {
  /** For retries: fetches the entity although a fetch failed in the last minute. */
  readonly again?: boolean
  /** Milliseconds for the whole fetch. */
  readonly within?: number
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
export async function fetchEntity(pod: Pod, wanted: WantedEntity, options: FetchOptions = {}): Promise<Post> {
  const until = performance.now() + (options.within ?? REMOTE_LIMITS.exchangeMs)
  const stored = wanted.isUnreadable ? undefined : await findStoredPost(pod, wanted)
  if (stored !== undefined) return stored
  // The requested pods are part of the key: the failure of one pod says nothing about another one.
  const key = `${wanted.isUnreadable ?? ''}${wanted.type}:${wanted.guid} ${wanted.from} ${wanted.orFrom} ${wanted.author}`
  return sharedFetches(pod.remote, openSharedLookups<Post>).run(
    key,
    () => fetchFromEither(pod, wanted, { guids: [], until }),
    { ...options, now: pod.now },
  )
}

/** Shared fetches of each open pod of this process. */
const sharedFetches = stateByOwner<RemotePods, SharedLookups<Post>>()

async function findStoredPost({ db }: Pod, { type, guid }: WantedEntity): Promise<Post | undefined> {
  return postQueries[type](Post.query(db), guid).withGraphFetched('author').select('posts.*')
}

type PostQuery = QueryBuilder<Post, Post | undefined>

const postQueries: Readonly<Record<FetchableKind, (posts: QueryBuilder<Post>, guid: string) => PostQuery>> = {
  post: (posts, guid) => posts.findOne({ guid }),
  poll: (posts, guid) => posts.findOne({ 'poll.guid': guid }).joinRelated('poll'),
  comment: (posts, guid) => posts.findOne({ 'comments.guid': guid }).joinRelated('comments'),
}

/** Fetches from the first pod, and from the second one if that fails. */
async function fetchFromEither(pod: Pod, wanted: WantedEntity, { guids, until }: FetchChain): Promise<Post> {
  if (!isGuid(wanted.guid)) throw notFetchable('this is not a guid')
  if (guids.includes(wanted.guid)) throw notFetchable(`${wanted.guid} refers to itself`)
  if (wanted.depth > REFERENCE_LIMITS.chainDepth)
    throw notFetchable(`${wanted.guid} is too deep in a chain of references`)
  const chain = { guids: [...guids, wanted.guid], until }
  const { from, orFrom } = wanted
  try {
    return await fetchFrom(pod, wanted, from, chain)
  } catch (error) {
    if (orFrom === undefined || !(error instanceof ProtocolError)) throw error
    return fetchFrom(pod, wanted, orFrom, chain)
  }
}

async function fetchFrom(pod: Pod, wanted: WantedEntity, from: string, chain: FetchChain): Promise<Post> {
  const origin = await fetchOriginOf(pod, from, chain)
  const envelope = await requestEnvelope(
    pod,
    `${origin}/fetch/${wanted.type}/${encodeURIComponent(wanted.guid)}`,
    chain.until,
  )
  await receiveWithReferences(pod, { envelope, acceptedAt: pod.now(), wanted }, chain)
  const post = wanted.isUnreadable ? undefined : await findStoredPost(pod, wanted)
  if (post === undefined) throw notFetchable(`${wanted.guid} was fetched but not stored`)
  return post
}

/** The origin of the pod to fetch from. Throws for this pod and for blocked pods. */
async function fetchOriginOf(pod: Pod, from: string, chain: FetchChain): Promise<string> {
  if (isAddress(from)) {
    const person = await findOrDiscoverPerson(pod, from, chain)
    if (!person.pod) throw notFetchable(`${from} is a local person, and there is no such entity`)
    const origin = buildRequestOrigin(person.pod)
    if (origin === undefined || person.pod.blockedAt !== null)
      throw notFetchable(`the pod of ${from} is blocked or has no valid host`)
    return origin
  }
  const url = isUrl(`https://${from}/`) ? new URL(`https://${from}/`) : undefined
  if (
    url === undefined ||
    isThisPod(pod.config, parsePodHost(url)) ||
    (await OtherPod.isBlocked(pod.db, parsePodHost(url)))
  ) {
    throw notFetchable(`${from} is this pod, a blocked pod or not a valid host`)
  }
  return url.origin
}

async function findOrDiscoverPerson(pod: Pod, address: string, { until }: FetchChain): Promise<Person> {
  const storedPerson = await Person.byAddress(pod.db, address)
  if (storedPerson !== undefined) return storedPerson
  try {
    return await discoverPerson(pod, address, { within: millisecondsUntil(until) })
  } catch (error) {
    throw error instanceof ProtocolError ? notFetchable(error.message, error) : error
  }
}

async function requestEnvelope({ remote }: Pod, url: string, until: number): Promise<string> {
  try {
    const { status, body } = await remote.get(url, {
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
  pod: Pod,
  message: InboundMessage & { readonly wanted: WantedEntity },
  chain: FetchChain,
): Promise<void> {
  const fetched = new Set<string>()
  let { wanted } = message
  for (;;) {
    const { waiting, rejected, ignored } = await retryAfterLockTimeout(() =>
      receiveBatch(pod, [{ ...message, wanted }]),
    )
    const [rejection] = rejected
    if (rejection !== undefined) throw notFetchable(`${rejection.fault}: ${rejection.reason}`)
    const [ignoredMessage] = ignored
    if (ignoredMessage !== undefined) throw notFetchable(ignoredMessage.reason)
    const [missing] = waiting
    if (missing === undefined) return
    if (fetched.has(missing.waitsFor)) throw notFetchable(`${missing.waitsFor} was fetched but not stored`)
    fetched.add(missing.waitsFor)
    wanted = { ...wanted, fetchesLeft: await fetchMissing(pod, missing, chain) }
  }
}

/** Fetches a missing reference. Returns the number of fetches that the message may still cause. */
async function fetchMissing(pod: Pod, missing: WaitingMessage, chain: FetchChain): Promise<number> {
  const { message, waitsFor, fetchFrom, fallbackFetchFrom, arrival } = missing
  const fetchesLeft = countRemainingFetches(message)
  const [kind, name] = splitEntityKey(waitsFor)
  if (fetchFrom === undefined) throw notFetchable(`no pod is known that may have ${waitsFor}`)
  if (kind === 'person') {
    // Except for relayables, an envelope with two people would be rejected. So it must not cause lookups of them.
    const { sender, author } = peekEnvelope(message.envelope)
    const { wanted } = message
    const mayBeRelayed = wanted !== undefined && isRelayableKind(wanted.type)
    const isPlausible = (sender === author || mayBeRelayed) && (wanted?.author ?? author) === author
    if (!isPlausible) throw notFetchable(`sender ${sender ?? '(none)'} may not send an entity by ${author ?? '(none)'}`)
    await findOrDiscoverPerson(pod, fetchFrom, chain)
    return fetchesLeft
  }
  if (!isFetchable(kind)) throw notFetchable(`${waitsFor} cannot be fetched, it can only be received`)
  if (fetchesLeft < 1) throw notFetchable(`${waitsFor} exceeds the number of fetches that one message may cause`)
  const depth = (message.wanted?.depth ?? 0) + 1
  // Half of the fetches are kept for the links in the text of the message. A reshare has no text, so it keeps none.
  const kept = arrival === undefined || readLinkedText(arrival.entity) === '' ? 0 : Math.floor((fetchesLeft - 1) / 2)
  const wanted = {
    ...toFetchable(kind),
    guid: name,
    from: fetchFrom,
    orFrom: fallbackFetchFrom,
    author: missing.author,
    depth,
    ...(message.wanted?.isForArchive && { isForArchive: true as const }),
  }
  await fetchFromEither(pod, { ...wanted, fetchesLeft: fetchesLeft - 1 - kept }, chain)
  return kept
}

function millisecondsUntil(until: number): number {
  return Math.max(1, until - performance.now())
}

function notFetchable(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('NotFetchable', reason, { cause })
}
