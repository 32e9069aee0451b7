import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { Person } from '../../persistence/models/person.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import { parseAddress } from '../../protocol/address.js'
import type { PersonLinks } from '../../protocol/discovery/discovery-documents.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import type { RemotePodClient } from '../../services/remote-pod-client.js'
import type { Services } from '../../services/services.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { DISCOVERY_LIMITS } from './limits.js'
import { isSamePodHost, isThisPod, parseHomeUrl, parsePodHost } from './pod-location.js'
import { readRemoteDocument } from './read-document.js'
import { receiveMove, receiveUnprovenMove } from './receive-move.js'
import { savePerson } from './save-person.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

export interface DiscoverOptions {
  /** Whether the person is looked up although a lookup has failed in the last minute, as retries do. */
  readonly ignoresRecentFailures?: boolean
  /** Reads the profile of a known person again, even if it is fresh. */
  readonly refresh?: boolean
  /** Milliseconds for the whole lookup. */
  readonly withinMs?: number
  /** Moves that were followed to this address, one after the other. */
  readonly movesFollowed?: number
}

/**
 * Returns the person with this address, from the database or from the pod at its host. Any failure ends as `DiscoveryFailed` with
 * the reason, and nothing is stored.
 */
export async function discoverPerson(services: Services, text: string, options: DiscoverOptions = {}): Promise<Person> {
  const address = parseAddress(text)
  const home = address === undefined ? undefined : parseHomeUrl(address)
  if (address === undefined || home === undefined) throw discoveryFailed('this is not an address')

  const storedPerson = await Person.byAddress(services.db, address)
  if (storedPerson?.podId === null) return storedPerson
  if (isThisPod(services.config, parsePodHost(home))) throw discoveryFailed(`there is no local account ${address}`)
  if (storedPerson !== undefined && !isStale(storedPerson, services.now(), options)) return storedPerson
  try {
    return await lookupsOf(services).run(
      address,
      () => lookUp(services, address, home, { ...options, isKnown: storedPerson !== undefined }),
      { ...options, now: services.now },
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
  services: Services,
  { host, guid }: { readonly host: string; readonly guid: string },
  { withinMs = REMOTE_LIMITS.exchangeMs }: Pick<DiscoverOptions, 'withinMs'> = {},
): Promise<Person> {
  const home = isUrl(`https://${host}/`) ? new URL(`https://${host}/`) : undefined
  if (home === undefined || isThisPod(services.config, parsePodHost(home)))
    throw discoveryFailed(`${host} is not another pod`)
  await refuseBlocked(services, home)
  const until = performance.now() + withinMs
  const html = await requestText(services, `${home.origin}/hcard/users/${encodeURIComponent(guid)}`, 'text/html', until)
  const hcard = await readRemoteDocument(services, { type: 'hcard', text: html })
  if (hcard.guid !== guid) throw discoveryFailed(`${host} returns another person for ${guid}`)
  return discoverPerson(services, `${hcard.nickname}@${host}`, { withinMs: Math.max(1, until - performance.now()) })
}

function isStale({ refreshedAt, closedAt }: Person, now: Date, { refresh = false }: DiscoverOptions): boolean {
  if (closedAt !== null) return false
  const age = refreshedAt === null ? Number.POSITIVE_INFINITY : now.getTime() - refreshedAt.getTime()
  return refresh || age > DISCOVERY_LIMITS.personFreshMs
}

/** Shared lookups, one state for each set of open services. */
const lookupsByRemote = stateByOwner<RemotePodClient, SharedLookups<Person>>()

function lookupsOf({ remotePods }: Services): SharedLookups<Person> {
  return lookupsByRemote(remotePods, openSharedLookups<Person>)
}

interface LookUpOptions extends DiscoverOptions {
  /** The pod of a known person never changes, so its confirmation is skipped. */
  readonly isKnown: boolean
}

async function lookUp(
  services: Services,
  address: string,
  home: URL,
  { withinMs, isKnown, movesFollowed = 0 }: LookUpOptions,
): Promise<Person> {
  await refuseBlocked(services, home)
  const began = services.now()
  const until = performance.now() + (withinMs ?? REMOTE_LIMITS.exchangeMs)
  const claimedLinks = await requestWebFinger(services, home, address, until)
  const links = isKnown ? claimedLinks : await confirmPod(services, { address, home, claimed: claimedLinks, until })
  const podUrl = new URL(links.podUrl)
  if (isThisPod(services.config, parsePodHost(podUrl))) throw discoveryFailed(`${address} claims to be on this pod`)
  await refuseBlocked(services, podUrl)
  const html = await requestText(services, links.hcardUrl, 'text/html', until)
  const hcard = await readRemoteDocument(services, { type: 'hcard', text: html })
  const person = await savePerson(services, { address, podUrl, hcard, began })
  if (person.closedAt === null) await receiveUnprovenMove(services, person)
  const { successorUrl } = links
  if (successorUrl !== undefined && person.closedAt === null)
    await receiveMove(services, { address, podUrl, successorUrl, until, movesFollowed })
  return person
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
async function confirmPod(services: Services, { address, home, claimed, until }: ClaimedPod): Promise<PersonLinks> {
  const podUrl = new URL(claimed.podUrl)
  if (isSamePodHost(parsePodHost(home), parsePodHost(podUrl)) || isThisPod(services.config, parsePodHost(podUrl)))
    return claimed
  await refuseBlocked(services, podUrl)
  const confirmingLinks = await requestWebFinger(services, podUrl, address, until)
  if (isSamePodHost(parsePodHost(podUrl), parsePodHost(new URL(confirmingLinks.podUrl)))) return confirmingLinks
  throw discoveryFailed(`${podUrl.host} does not confirm that ${address} is on it`)
}

async function requestWebFinger(services: Services, at: URL, address: string, until: number): Promise<PersonLinks> {
  const text = await requestText(services, webFingerUrl(at, address), jrdTypes, until)
  return readRemoteDocument(services, { type: 'webFinger', text, address })
}

export const jrdTypes = 'application/jrd+json, application/json'

/** Unescaped, as the other pods of the network write it. */
export function webFingerUrl(home: URL, address: string): string {
  return `${home.origin}/.well-known/webfinger?resource=acct:${address}`
}

async function refuseBlocked(services: Services, url: URL): Promise<void> {
  if (await RemotePod.isBlocked(services.db, parsePodHost(url)))
    throw discoveryFailed(`${url.host} is blocked by the operator`)
}

async function requestText({ remotePods }: Services, url: string, accept: string, until: number): Promise<string> {
  try {
    const { status, body } = await remotePods.get(url, {
      accept,
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: Math.max(1, until - performance.now()),
    })
    if (status < 200 || status > 299) throw discoveryFailed(`${url} was answered with status ${status}`)
    return body.toString()
  } catch (error) {
    if (error instanceof RemotePodError) throw discoveryFailed(error.message, error)
    throw error
  }
}

function discoveryFailed(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('DiscoveryFailed', reason, { cause })
}
