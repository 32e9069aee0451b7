import type { Config } from '../../config/config.js'
import type { Pod as OtherPod, PodHost } from '../../persistence/models/pod.js'
import { splitAddress } from '../../protocol/address.js'
import { isUrl } from '../../protocol/is-url.js'
import { podOrigin } from './pod-origin.js'

/** The place of a pod, however its address is written. */
export function podHostOf(url: URL): PodHost {
  const port = url.port === '' || url.port === '80' ? 443 : Number(url.port)
  return { host: url.hostname, port }
}

/** Where WebFinger knows a person; undefined: no host of the web can be meant. */
export function homeUrlOf(address: string): URL | undefined {
  const host = splitAddress(address)?.host
  return host !== undefined && isUrl(`https://${host}/`) ? new URL(`https://${host}/`) : undefined
}

/** Where we ask a pod: by https first, whatever has been seen of it. Undefined: there is no place to ask. */
export function requestOriginOf(pod: Pick<OtherPod, 'host' | 'port' | 'ssl'>): string | undefined {
  return podOrigin({ ...pod, ssl: true })
}

/** This pod is asked by its own functions, never over the network. */
export function isThisPod({ url }: Pick<Config, 'url'>, place: PodHost): boolean {
  return isSamePodHost(podHostOf(new URL(url)), place)
}

/** A host with and without `www.` is one. */
export function isSamePodHost(one: PodHost, other: PodHost): boolean {
  return one.port === other.port && withoutWww(one.host) === withoutWww(other.host)
}

/** Somebody whose pod can be asked: it has a host of the web, and is not this one. */
export function isRemoteAddress({ config }: { readonly config: Pick<Config, 'url'> }, address: string): boolean {
  const home = homeUrlOf(address)
  return home !== undefined && !isThisPod(config, podHostOf(home))
}

/** The same for the host of a page. */
export function isOtherHost({ config }: { readonly config: Pick<Config, 'url'> }, host: string): boolean {
  return isUrl(`https://${host}/`) && !isThisPod(config, podHostOf(new URL(`https://${host}/`)))
}

function withoutWww(host: string): string {
  return host.replace(/^www\./, '')
}
