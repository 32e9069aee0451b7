import type { QueryBuilder } from 'objection'
import type { WantedEntity } from '../../jobs/definitions.js'
import { fetchableOf, isFetchable, partsOf } from '../../jobs/waiting/waiting-messages.js'
import { LOOKUP_LIMITS, REMOTE_LIMITS } from '../../limits.js'
import { retryAfterLockTimeout } from '../../persistence/database/errors.js'
import { Person } from '../../persistence/models/person.js'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import { Post } from '../../persistence/models/post.js'
import type { Pod, RemotePods } from '../../pod/pod.js'
import { isAddress } from '../../protocol/address.js'
import { peekEnvelope } from '../../protocol/envelopes/magic-envelope.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { isGuid } from '../../protocol/values.js'
import type { InboundMessage, WaitingMessage } from '../inbound/batch.js'
import { receiveBatch } from '../inbound/receive-batch.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { discoverPerson } from './discover-person.js'
import { fetchesLeftOf, textOf } from './linked-entities.js'
import { isThisPod, podHostOf, requestOriginOf } from './pod-location.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

export interface FetchOptions {
  /** Asks although it failed a moment ago: for those who try again because it did. */
  readonly again?: boolean
  /** Milliseconds for all of it. */
  readonly within?: number
}

/** How far a fetch has come. */
interface Way {
  /** The guids of what is being fetched, from the first to this one. */
  readonly chain: readonly string[]
  /** When the time for all of it is over, by `performance.now()`. */
  readonly until: number
}

/**
 * The post that is wanted, or that holds the wanted poll or comment: here already, or fetched from the pod that has it and
 * taken in like any message. Whatever goes wrong on the way ends as `NotFetchable` with the reason.
 */
export async function fetchEntity(pod: Pod, wanted: WantedEntity, options: FetchOptions = {}): Promise<Post> {
  const until = performance.now() + (options.within ?? REMOTE_LIMITS.exchangeMs)
  const here = wanted.isUnreadable ? undefined : await findHere(pod, wanted)
  if (here !== undefined) return here
  // Who is asked is part of it: a pod that does not have it says nothing about one that does.
  const name = `${wanted.isUnreadable ?? ''}${wanted.type}:${wanted.guid} ${wanted.from} ${wanted.orFrom} ${wanted.author}`
  return lookupsOf(pod).run(name, () => bring(pod, wanted, { chain: [], until }), { ...options, now: pod.now })
}

/** One for each process and pod. */
const lookups = new WeakMap<RemotePods, SharedLookups<Post>>()

function lookupsOf({ remote }: Pod): SharedLookups<Post> {
  const open = lookups.get(remote) ?? openSharedLookups<Post>()
  lookups.set(remote, open)
  return open
}

async function findHere({ db }: Pod, { type, guid }: WantedEntity): Promise<Post | undefined> {
  return findOf[type](Post.query(db), guid).withGraphFetched('author').select('posts.*')
}

type Search = QueryBuilder<Post, Post | undefined>

const findOf: Readonly<Record<WantedEntity['type'], (posts: QueryBuilder<Post>, guid: string) => Search>> = {
  post: (posts, guid) => posts.findOne({ guid }),
  poll: (posts, guid) => posts.findOne({ 'poll.guid': guid }).joinRelated('poll'),
  comment: (posts, guid) => posts.findOne({ 'comments.guid': guid }).joinRelated('comments'),
}

async function bring(pod: Pod, wanted: WantedEntity, { chain, until }: Way): Promise<Post> {
  if (!isGuid(wanted.guid)) throw notFetchable('this is no guid')
  if (chain.includes(wanted.guid)) throw notFetchable(`${wanted.guid} needs itself`)
  if (wanted.depth > LOOKUP_LIMITS.chainDepth) throw notFetchable(`${wanted.guid} is too far down a chain`)
  const way = { chain: [...chain, wanted.guid], until }
  const { from, orFrom } = wanted
  try {
    return await bringFrom(pod, wanted, from, way)
  } catch (error) {
    if (orFrom === undefined || !(error instanceof ProtocolError)) throw error
    return bringFrom(pod, wanted, orFrom, way)
  }
}

async function bringFrom(pod: Pod, wanted: WantedEntity, from: string, way: Way): Promise<Post> {
  const origin = await originOf(pod, from, way)
  const envelope = await ask(pod, `${origin}/fetch/${wanted.type}/${encodeURIComponent(wanted.guid)}`, way.until)
  await takeIn(pod, { envelope, acceptedAt: pod.now(), wanted }, way)
  const post = wanted.isUnreadable ? undefined : await findHere(pod, wanted)
  if (post === undefined) throw notFetchable(`${wanted.guid} was fetched and is not here`)
  return post
}

/** Where the pod is asked; never ours, and none that the operator has blocked. */
async function originOf(pod: Pod, from: string, way: Way): Promise<string> {
  if (isAddress(from)) {
    const person = await personOf(pod, from, way)
    if (!person.pod) throw notFetchable(`${from} lives here, and wrote nothing like this`)
    const origin = requestOriginOf(person.pod)
    if (origin === undefined || person.pod.blockedAt !== null) throw notFetchable(`the pod of ${from} is not asked`)
    return origin
  }
  const url = isUrl(`https://${from}/`) ? new URL(`https://${from}/`) : undefined
  if (
    url === undefined ||
    isThisPod(pod.config, podHostOf(url)) ||
    (await OtherPod.isBlocked(pod.db, podHostOf(url)))
  ) {
    throw notFetchable(`${from} is not asked`)
  }
  return url.origin
}

async function personOf(pod: Pod, address: string, { until }: Way): Promise<Person> {
  const known = await Person.byAddress(pod.db, address)
  if (known !== undefined) return known
  try {
    return await discoverPerson(pod, address, { within: left(until) })
  } catch (error) {
    throw error instanceof ProtocolError ? notFetchable(error.message, error) : error
  }
}

async function ask({ remote }: Pod, url: string, until: number): Promise<string> {
  try {
    const { status, body } = await remote.get(url, {
      accept: 'application/magic-envelope+xml',
      maxBytes: REMOTE_LIMITS.fetchBytes,
      redirects: REMOTE_LIMITS.redirects,
      orPlain: true,
      deadline: left(until),
    })
    if (status < 200 || status > 299) throw notFetchable(`${url} was answered with status ${status}`)
    return body.toString()
  } catch (error) {
    throw error instanceof RemotePodError ? notFetchable(error.message, error) : error
  }
}

/** What is fetched goes the way of every message; what it needs is fetched first, each thing once. */
async function takeIn(pod: Pod, message: InboundMessage & { readonly wanted: WantedEntity }, way: Way): Promise<void> {
  const brought = new Set<string>()
  let { wanted } = message
  for (;;) {
    const { waiting, rejected, ignored } = await retryAfterLockTimeout(() =>
      receiveBatch(pod, [{ ...message, wanted }]),
    )
    const [fault] = rejected
    if (fault !== undefined) throw notFetchable(`${fault.fault}: ${fault.reason}`)
    const [end] = ignored
    if (end !== undefined) throw notFetchable(end.reason)
    const [missing] = waiting
    if (missing === undefined) return
    if (brought.has(missing.waitsFor)) throw notFetchable(`${missing.waitsFor} was brought and is not here`)
    brought.add(missing.waitsFor)
    wanted = { ...wanted, fetchesLeft: await bringMissing(pod, missing, way) }
  }
}

/** Returns how many fetches are left then for what needed it. */
async function bringMissing(pod: Pod, missing: WaitingMessage, way: Way): Promise<number> {
  const { message, waitsFor, askAt, orAskAt, arrival } = missing
  const fetchesLeft = fetchesLeftOf(message)
  const [kind, name] = partsOf(waitsFor)
  if (askAt === undefined) throw notFetchable(`nobody can be asked for ${waitsFor}`)
  if (kind === 'person') {
    // But for a comment, an envelope that names two people cannot be accepted: nobody is asked about them for it.
    const { sender, author } = peekEnvelope(message.envelope)
    const { wanted } = message
    const isPlausible = (sender === author || wanted?.type === 'comment') && (wanted?.author ?? author) === author
    if (!isPlausible) throw notFetchable(`${sender ?? 'nobody'} has signed what ${author ?? 'nobody'} wrote`)
    await personOf(pod, askAt, way)
    return fetchesLeft
  }
  if (!isFetchable(kind)) throw notFetchable(`${waitsFor} can only come by itself`)
  if (fetchesLeft < 1) throw notFetchable(`${waitsFor} is one fetch too many for one message`)
  const depth = (message.wanted?.depth ?? 0) + 1
  // Half is kept for the links of what needed it; a reshare has no text and keeps nothing.
  const kept = arrival === undefined || textOf(arrival.entity) === '' ? 0 : Math.floor((fetchesLeft - 1) / 2)
  const wanted = { ...fetchableOf(kind), guid: name, from: askAt, orFrom: orAskAt, author: missing.author, depth }
  await bring(pod, { ...wanted, fetchesLeft: fetchesLeft - 1 - kept }, way)
  return kept
}

function left(until: number): number {
  return Math.max(1, until - performance.now())
}

function notFetchable(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('NotFetchable', reason, { cause })
}
