import querystring from 'node:querystring'
import { InvalidArgumentError } from 'commander'
import { parseHomeUrl, parsePodHost } from '../src/federation/discovery/pod-location.js'
import type { FetchRequest } from '../src/jobs/definitions.js'
import type { PodHost } from '../src/persistence/models/remote-pod.js'
import { parseAddress } from '../src/protocol/address.js'
import { fetchableKind } from '../src/protocol/entities/registry.js'
import { isUrl } from '../src/protocol/is-url.js'
import { readLinks } from '../src/protocol/mentions.js'
import { isGuid } from '../src/protocol/values.js'

/** An object of another pod that an operator has named. */
export type FetchTarget =
  /** Some guids look like addresses, so the typed text is kept. */
  | { readonly kind: 'person'; readonly address: string; readonly text: string }
  | { readonly kind: 'entity'; readonly fetchRequest: FetchRequest }
  | { readonly kind: 'guid'; readonly guid: string }

/** The target of a probe. */
export type ProbeTarget =
  | { readonly kind: 'person'; readonly address: string }
  | { readonly kind: 'pod'; readonly origin: string }

/** Parses typed or pasted text. */
export function readFetchTarget(text: string): FetchTarget {
  const alone = /^(?:web\+)?diaspora:\/\/([^/]+)$/.exec(text)?.[1]
  const address = parseAddress(alone ?? text)
  if (address !== undefined) return { kind: 'person', address, text }
  const [link] = readLinks(text)
  if (link !== undefined) {
    const type = fetchableKind(link.type)
    if (type === undefined || type === 'comment') throw new InvalidArgumentError(`A ${link.type} cannot be fetched.`)
    return { kind: 'entity', fetchRequest: { type, guid: link.guid, from: link.author, author: link.author, depth: 0 } }
  }
  const url = isUrl(text) ? new URL(text) : undefined
  const [, guid] = /^\/(?:posts|p)\/([^/]+)\/?$/.exec(querystring.unescape(url?.pathname ?? '')) ?? []
  if (url !== undefined && guid !== undefined && isGuid(guid)) {
    return { kind: 'entity', fetchRequest: { type: 'post', guid, from: url.host, depth: 0 } }
  }
  if (isGuid(text)) return { kind: 'guid', guid: text }
  throw new InvalidArgumentError('Expected an address, a link to a post, a diaspora:// link, or a guid.')
}

export function readAddress(text: string): string {
  const address = parseAddress(text)
  if (address === undefined) throw new InvalidArgumentError('Expected an address like alice@pod.example.')
  return address
}

/** Parses the host of a pod, or an address, which stands for its pod. */
export function readPodOfSource(text: string): string {
  const from = parseAddress(text) ?? hostOf(text)
  if (from === undefined) throw new InvalidArgumentError('Expected the host of a pod, or the address of a person.')
  return from
}

export function readProbeTarget(text: string): ProbeTarget {
  const address = parseAddress(text)
  if (address !== undefined) return { kind: 'person', address }
  const host = hostOf(text)
  if (host !== undefined) return { kind: 'pod', origin: `https://${host}` }
  throw new InvalidArgumentError('Expected an address, or the host or URL of a pod.')
}

/** The location of a pod, given by host, URL or address of a person. */
export function readPodHost(text: string): PodHost {
  const target = readProbeTarget(text)
  const url = target.kind === 'person' ? parseHomeUrl(target.address) : new URL(target.origin)
  if (url === undefined) throw new InvalidArgumentError('The URL has no valid host name.')
  return parsePodHost(url)
}

/** Parses `pod.example`, `pod.example:3000` or `https://pod.example/path`. */
function hostOf(text: string): string | undefined {
  const hasScheme = /^https?:\/\//i.test(text)
  const url = hasScheme ? text : `https://${text}/`
  const isHost = hasScheme || /^[^/?#@\s]+$/.test(text)
  return isHost && isUrl(url) ? new URL(url).host : undefined
}
