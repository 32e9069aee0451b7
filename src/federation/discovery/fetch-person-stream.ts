import { fetchStreamJob } from '../../jobs/definitions.js'
import { REFERENCE_LIMITS } from '../../jobs/waiting/limits.js'
import { Person } from '../../persistence/models/person.js'
import { Post } from '../../persistence/models/post.js'
import { PERSON_STREAM_LIMITS } from '../../protocol/discovery/limits.js'
import { ProtocolError } from '../../protocol/errors.js'
import type { Services } from '../../services/services.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { fetchEntity } from './fetch-entity.js'
import { buildRequestOrigin } from './pod-location.js'
import { readRemoteDocument } from './read-document.js'

type StreamOwner = Pick<Person, 'address' | 'podId' | 'closedAt' | 'streamFetchedAt'>

/** Enqueues the fetch of the recent public posts of a remote person, once per person. */
export async function addFirstStreamFetch({ jobs }: Pick<Services, 'jobs'>, person: StreamOwner): Promise<void> {
  const { address, podId, closedAt, streamFetchedAt } = person
  if (podId === null || closedAt !== null || streamFetchedAt !== null) return
  await jobs.add(fetchStreamJob, { address }, { deduplicationKey: `stream-${address}` })
}

export interface StreamOptions {
  /** Requests the posts before the oldest stored one. Not set: the newest posts, and only the first time. */
  readonly older?: boolean
}

/**
 * Fetches the public posts in the stream of a remote person that this pod does not have yet. Returns the number of stored posts.
 * Throws a `ProtocolError` when the stream cannot be read; a post that cannot be fetched is left out.
 */
export async function fetchPersonStream(
  services: Services,
  address: string,
  { older = false }: StreamOptions = {},
): Promise<number> {
  const person = await Person.byAddress(services.db, address)
  if (person?.pod == null || person.closedAt !== null || person.pod.blockedAt !== null) return 0
  const origin = buildRequestOrigin(person.pod)
  if (origin === undefined) return 0
  // Marked first: of two jobs for one person only one fetches, and a failing pod is not requested again.
  const { id } = person
  const rowCount = await Person.query(services.db)
    .findById(id)
    .whereNull('streamFetchedAt')
    .patch({ streamFetchedAt: services.now() })
  if (rowCount === 0 && !older) return 0

  const until = performance.now() + PERSON_STREAM_LIMITS.allMs
  const personGuid = person.guidAtPod ?? person.guid
  const text = await requestStream(
    services,
    `${origin}/people/${encodeURIComponent(personGuid)}/stream${older ? await maxTimeParam(services, id) : ''}`,
  )
  const guids = await readRemoteDocument(services, { type: 'personStream', text, personGuid })
  const storedPosts = await Post.query(services.db)
    .whereIn('guid', [...guids])
    .select('guid')
  const unknown = guids.filter((guid) => !storedPosts.some((post) => post.guid === guid))
  let storedCount = 0
  // One post at a time: a stream uses one connection to the pod.
  for (const guid of unknown.reverse()) {
    const remainingMs = until - performance.now()
    if (remainingMs <= 0) break
    if (await fetchPost(services, { address, guid, withinMs: Math.min(remainingMs, REMOTE_LIMITS.exchangeMs) }))
      storedCount += 1
  }
  return storedCount
}

/** Fetches a post, with the root of a reshare but without links. Returns false if that fails. */
async function fetchPost(
  services: Services,
  { address, guid, withinMs }: { readonly address: string; readonly guid: string; readonly withinMs: number },
): Promise<boolean> {
  const depth = REFERENCE_LIMITS.linkDepth
  const fetchesLeft = PERSON_STREAM_LIMITS.fetchesOfPost
  try {
    await fetchEntity(
      services,
      { type: 'post', guid, from: address, author: address, depth, fetchesLeft },
      { withinMs },
    )
    return true
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    services.log.info({ fault: error.fault, reason: error.message }, 'post of a stream not fetched')
    return false
  }
}

/** The paging parameter of diaspora* streams: posts before this second, including those in the second of the oldest post. */
async function maxTimeParam({ db }: Services, authorId: number): Promise<string> {
  const oldest = await Post.query(db).where({ authorId, public: true }).orderBy('createdAt').select('createdAt').first()
  return oldest === undefined ? '' : `?max_time=${Math.floor(oldest.createdAt.getTime() / 1_000) + 1}`
}

async function requestStream({ remotePods }: Services, url: string): Promise<string> {
  try {
    const { status, body } = await remotePods.get(url, {
      accept: 'application/json',
      maxBytes: PERSON_STREAM_LIMITS.bytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: PERSON_STREAM_LIMITS.requestMs,
    })
    if (status >= 200 && status <= 299) return body.toString()
    throw new ProtocolError('NotFetchable', `${url} was answered with status ${status}`)
  } catch (error) {
    if (error instanceof RemotePodError) throw new ProtocolError('NotFetchable', error.message, { cause: error })
    throw error
  }
}
