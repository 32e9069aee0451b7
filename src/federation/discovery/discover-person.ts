import { Person } from '../../persistence/models/person.js'
import { Pod as OtherPod } from '../../persistence/models/pod.js'
import type { Pod, RemotePods } from '../../pod/pod.js'
import { parseAddress } from '../../protocol/address.js'
import type { PersonLinks } from '../../protocol/discovery/discovery-documents.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'
import { isSamePodHost, isThisPod, parseHomeUrl, parsePodHost } from './pod-location.js'
import { readRemoteDocument } from './read-document.js'
import { savePerson } from './save-person.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

export interface DiscoverOptions {
  /** For retries: looks up the person although a lookup failed in the last minute. */
  readonly again?: boolean
  /** Reads the profile of a known person again, even if it is fresh. */
  readonly refresh?: boolean
  /** Milliseconds for the whole lookup. */
  readonly within?: number
}

/**
 * Returns the person with this address, from the database or from the pod at its host. Any failure ends as `DiscoveryFailed` with
 * the reason, and nothing is stored.
 */
export async function discoverPerson(pod: Pod, text: string, options: DiscoverOptions = {}): Promise<Person> {
  const address = parseAddress(text)
  const home = address === undefined ? undefined : parseHomeUrl(address)
  if (address === undefined || home === undefined) throw failed('this is not an address')

  const storedPerson = await Person.byAddress(pod.db, address)
  if (storedPerson?.podId === null) return storedPerson
  if (isThisPod(pod.config, parsePodHost(home))) throw failed(`there is no local account ${address}`)
  if (storedPerson !== undefined && !isStale(storedPerson, pod.now(), options)) return storedPerson
  try {
    return await lookupsOf(pod).run(
      address,
      () => lookUp(pod, address, home, { ...options, isKnown: storedPerson !== undefined }),
      { ...options, now: pod.now },
    )
  } catch (error) {
    // A known person stays known while their pod is unreachable.
    if (storedPerson !== undefined && options.refresh !== true && error instanceof ProtocolError) return storedPerson
    throw error
  }
}

/**
 * Returns the person with this guid on the pod at this host. The hCard of the guid gives the address; the person is then
 * discovered by that address as always.
 */
export async function discoverProfile(
  pod: Pod,
  { host, guid }: { readonly host: string; readonly guid: string },
  { within = REMOTE_LIMITS.exchangeMs }: Pick<DiscoverOptions, 'within'> = {},
): Promise<Person> {
  const home = isUrl(`https://${host}/`) ? new URL(`https://${host}/`) : undefined
  if (home === undefined || isThisPod(pod.config, parsePodHost(home))) throw failed(`${host} is not another pod`)
  await refuseBlocked(pod, home)
  const until = performance.now() + within
  const html = await requestText(pod, `${home.origin}/hcard/users/${encodeURIComponent(guid)}`, 'text/html', until)
  const hcard = await readRemoteDocument(pod, { type: 'hcard', text: html })
  if (hcard.guid !== guid) throw failed(`${host} returns another person for ${guid}`)
  return discoverPerson(pod, `${hcard.nickname}@${host}`, { within: Math.max(1, until - performance.now()) })
}

function isStale({ refreshedAt, closedAt }: Person, now: Date, { refresh = false }: DiscoverOptions): boolean {
  if (closedAt !== null) return false
  const age = refreshedAt === null ? Number.POSITIVE_INFINITY : now.getTime() - refreshedAt.getTime()
  return refresh || age > DISCOVERY_LIMITS.personFreshMs
}

/** Shared lookups of each open pod of this process. */
const lookupsByRemote = stateByOwner<RemotePods, SharedLookups<Person>>()

function lookupsOf({ remote }: Pod): SharedLookups<Person> {
  return lookupsByRemote(remote, openSharedLookups<Person>)
}

interface LookUpOptions extends DiscoverOptions {
  /** The pod of a known person never changes, so its confirmation is skipped. */
  readonly isKnown: boolean
}

async function lookUp(pod: Pod, address: string, home: URL, { within, isKnown }: LookUpOptions): Promise<Person> {
  await refuseBlocked(pod, home)
  const began = pod.now()
  const until = performance.now() + (within ?? REMOTE_LIMITS.exchangeMs)
  const claimed = await requestWebFinger(pod, home, address, until)
  const links = isKnown ? claimed : await confirmPod(pod, { address, home, claimed, until })
  const podUrl = new URL(links.podUrl)
  if (isThisPod(pod.config, parsePodHost(podUrl))) throw failed(`${address} claims to be on this pod`)
  await refuseBlocked(pod, podUrl)
  const html = await requestText(pod, links.hcardUrl, 'text/html', until)
  const hcard = await readRemoteDocument(pod, { type: 'hcard', text: html })
  return savePerson(pod, { address, podUrl, hcard, began })
}

interface ClaimedPod {
  readonly address: string
  readonly home: URL
  readonly claimed: PersonLinks
  readonly until: number
}

/**
 * A pod on another host than the address must confirm the person itself. Otherwise any host could direct deliveries to a foreign
 * pod, and the operator could block only that pod for it.
 */
async function confirmPod(pod: Pod, { address, home, claimed, until }: ClaimedPod): Promise<PersonLinks> {
  const podUrl = new URL(claimed.podUrl)
  if (isSamePodHost(parsePodHost(home), parsePodHost(podUrl)) || isThisPod(pod.config, parsePodHost(podUrl)))
    return claimed
  await refuseBlocked(pod, podUrl)
  const confirmed = await requestWebFinger(pod, podUrl, address, until)
  if (isSamePodHost(parsePodHost(podUrl), parsePodHost(new URL(confirmed.podUrl)))) return confirmed
  throw failed(`${podUrl.host} does not confirm that ${address} is on it`)
}

async function requestWebFinger(pod: Pod, at: URL, address: string, until: number): Promise<PersonLinks> {
  const text = await requestText(pod, webFingerUrl(at, address), jrdTypes, until)
  return readRemoteDocument(pod, { type: 'webFinger', text, address })
}

export const jrdTypes = 'application/jrd+json, application/json'

/** Unescaped, as the other pods of the network write it. */
export function webFingerUrl(home: URL, address: string): string {
  return `${home.origin}/.well-known/webfinger?resource=acct:${address}`
}

async function refuseBlocked(pod: Pod, url: URL): Promise<void> {
  if (await OtherPod.isBlocked(pod.db, parsePodHost(url))) throw failed(`${url.host} is blocked by the operator`)
}

async function requestText({ remote }: Pod, url: string, accept: string, until: number): Promise<string> {
  try {
    const { status, body } = await remote.get(url, {
      accept,
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: Math.max(1, until - performance.now()),
    })
    if (status < 200 || status > 299) throw failed(`${url} was answered with status ${status}`)
    return body.toString()
  } catch (error) {
    if (error instanceof RemotePodError) throw failed(error.message, error)
    throw error
  }
}

function failed(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('DiscoveryFailed', reason, { cause })
}
