import type { Config } from '../../config/config.js'
import type { PodHost, RemotePod } from '../../persistence/models/remote-pod.js'
import { splitAddress } from '../../protocol/address.js'
import { isUrl } from '../../protocol/is-url.js'
import { podOrigin } from './pod-origin.js'

/** Host and port of a pod. Port 443 stands for both default ports. */
export function parsePodHost(url: URL): PodHost {
  const port = url.port === '' || url.port === '80' ? 443 : Number(url.port)
  return { host: url.hostname, port }
}

/** The URL of the host in an address, where WebFinger starts; undefined: not a valid host. */
export function parseHomeUrl(address: string): URL | undefined {
  const host = splitAddress(address)?.host
  return host !== undefined && isUrl(`https://${host}/`) ? new URL(`https://${host}/`) : undefined
}

/** The origin for requests to a pod: https first, even if only http has been seen. Undefined: not a valid host. */
export function buildRequestOrigin(pod: Pick<RemotePod, 'host' | 'port' | 'ssl'>): string | undefined {
  return podOrigin({ ...pod, ssl: true })
}

/** True for the host of this pod, which must not send requests to itself. */
export function isThisPod({ url }: Pick<Config, 'url'>, hostPort: PodHost): boolean {
  return isSamePodHost(parsePodHost(new URL(url)), hostPort)
}

/** Compares hosts, without regard to `www.`. */
export function isSamePodHost(one: PodHost, other: PodHost): boolean {
  return one.port === other.port && withoutWww(one.host) === withoutWww(other.host)
}

/** True for an address with a valid host other than this pod. */
export function isRemoteAddress({ config }: { readonly config: Pick<Config, 'url'> }, address: string): boolean {
  const home = parseHomeUrl(address)
  return home !== undefined && !isThisPod(config, parsePodHost(home))
}

/** True for a valid host of a page that is not this pod. */
export function isOtherHost({ config }: { readonly config: Pick<Config, 'url'> }, host: string): boolean {
  return isUrl(`https://${host}/`) && !isThisPod(config, parsePodHost(new URL(`https://${host}/`)))
}

function withoutWww(host: string): string {
  return host.replace(/^www\./, '')
}
