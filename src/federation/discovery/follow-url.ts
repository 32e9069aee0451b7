import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { RemotePod } from '../../persistence/models/remote-pod.js'
import { parseAddress, splitAddress } from '../../protocol/address.js'
import { ProtocolError } from '../../protocol/errors.js'
import { isUrl } from '../../protocol/is-url.js'
import type { RemotePodClient } from '../../services/remote-pod-client.js'
import type { Services } from '../../services/services.js'
import { REMOTE_LIMITS } from '../remote-pod/limits.js'
import { RemotePodError } from '../remote-pod/remote-pod-error.js'
import { jrdTypes, webFingerUrl } from './discover-person.js'
import { ANONYMOUS_LOOKUP_LIMITS, DISCOVERY_LIMITS } from './limits.js'
import type { Lookup } from './lookups.js'
import { isOtherHost, parseHomeUrl, parsePodHost } from './pod-location.js'
import { readRemoteDocument } from './read-document.js'
import { openSharedLookups, type SharedLookups } from './shared-lookups.js'

/** Pages on which users follow a person, by the software of their pod; `{address}` is the person's address. */
const FOLLOW_PAGES: Readonly<Record<string, string>> = {
  friendica: '/contact/follow?url={address}',
  hubzilla: '/follow?f=&url={address}',
}
const DEFAULT_FOLLOW_PAGE = '/people?q={address}'

/** The account of a visitor on another pod. */
export interface VisitorAccount {
  readonly host: string
  /** Undefined: only the pod was entered. */
  readonly address: string | undefined
}

/** Reads `pod.example`, `https://pod.example/…` and `alice@pod.example`. Undefined: it is none of these, or on this pod. */
export function readVisitorAccount(
  services: Pick<Services, 'config'>,
  enteredText: string,
): VisitorAccount | undefined {
  const text = enteredText
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/\/.*$/s, '')
    .replace(/^@/, '')
  const hasName = text.includes('@')
  const address = parseAddress(hasName ? text : `someone@${text}`)
  const host = address && splitAddress(address)?.host
  if (host === undefined || !(host.includes('.') || host.startsWith('localhost'))) return undefined
  return isOtherHost(services, host) ? { host, address: hasName ? address : undefined } : undefined
}

/**
 * Looks up the page of another pod on which a visitor can follow the local person with this address. WebFinger of the visitor's
 * account names the page; without an account or an answer in time it is the page that the software of the pod is known to have.
 */
export function lookUpFollowUrl(
  services: Services,
  address: string,
  { host, address: visitor }: VisitorAccount,
): Lookup<string> {
  if (visitor === undefined) return { find: () => findKnownFollowUrl(services, address, host) }
  return {
    find: async () => undefined,
    async requestFromPod() {
      const url =
        (await requestFollowUrl(services, address, visitor)) ?? (await findKnownFollowUrl(services, address, host))
      return { state: 'found', found: url }
    },
  }
}

async function findKnownFollowUrl(services: Pick<Services, 'db'>, address: string, host: string): Promise<string> {
  const home = new URL(`https://${host}`)
  const otherPod = await RemotePod.query(services.db).select('software').findOne(parsePodHost(home))
  const path = FOLLOW_PAGES[otherPod?.software?.toLowerCase() ?? ''] ?? DEFAULT_FOLLOW_PAGE
  return new URL(path.replace('{address}', encodeURIComponent(address)), home).href
}

/** Templates that this process reads; a failed request is not repeated for a minute. */
const lookupsByRemote = stateByOwner<RemotePodClient, SharedLookups<string>>()

async function requestFollowUrl(services: Services, address: string, visitor: string): Promise<string | undefined> {
  const home = parseHomeUrl(visitor)
  if (home === undefined || (await RemotePod.isBlocked(services.db, parsePodHost(home)))) return undefined
  try {
    const lookups = lookupsByRemote(services.remotePods, openSharedLookups<string>)
    const template = await lookups.run(visitor, () => requestTemplate(services, home, visitor), services)
    return followUrlOf(services, template, address)
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error
    services.log.debug({ fault: error.fault, reason: error.message }, 'no page for following named by WebFinger')
    return undefined
  }
}

async function requestTemplate(services: Services, home: URL, visitor: string): Promise<string> {
  try {
    const { status, body } = await services.remotePods.get(webFingerUrl(home, visitor), {
      accept: jrdTypes,
      maxBytes: REMOTE_LIMITS.discoveryBytes,
      redirects: REMOTE_LIMITS.redirects,
      mayUsePlain: true,
      deadline: ANONYMOUS_LOOKUP_LIMITS.followUrlMs,
    })
    if (status !== 200) throw new ProtocolError('DiscoveryFailed', `${home.host} answered with status ${status}`)
    return await readRemoteDocument(services, { type: 'subscribeTemplate', text: body.toString() })
  } catch (error) {
    if (error instanceof RemotePodError) throw new ProtocolError('DiscoveryFailed', error.message, { cause: error })
    throw error
  }
}

/** The host of the page comes from the template alone, and must be reached by https. */
function followUrlOf({ config }: Pick<Services, 'config'>, template: string, address: string): string | undefined {
  const text = template.replaceAll('{uri}', () => encodeURIComponent(address))
  if (!isUrl(text)) return undefined
  const url = new URL(text)
  const isAllowed =
    url.protocol === 'https:' || (url.protocol === 'http:' && isPrivateHostAllowed(config.allowPrivateAddresses, url))
  const isSafe = isAllowed && url.username === '' && url.password === ''
  return isSafe && url.href.length <= DISCOVERY_LIMITS.urlCharacters ? url.href : undefined
}
