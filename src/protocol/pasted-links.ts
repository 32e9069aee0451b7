import { parseAddress } from './address.js'
import { isUrl } from './is-url.js'
import { type EntityLink, readLinks } from './mentions.js'
import { isGuid } from './values.js'

/** A pasted text that names a person or a post: an address, a link of the network, or the address of a page of a pod. */
export type PastedLink =
  | { readonly to: 'person'; readonly address: string }
  /** The page of a person on the pod at this host, which need not be their own. */
  | { readonly to: 'profile'; readonly host: string; readonly guid: string }
  | { readonly to: 'entity'; readonly link: EntityLink }
  /** The page of a post, likewise. */
  | { readonly to: 'post'; readonly host: string; readonly guid: string }

const MAX_CHARACTERS = 2_048
const MAX_HOST_CHARACTERS = 255

/** Undefined: a text of another kind. */
export function readPastedLink(given: string): PastedLink | undefined {
  if (given.length > MAX_CHARACTERS) return undefined
  const text = given.trim()
  if (/^(?:web\+)?diaspora:\/\//i.test(text))
    return readDiasporaLink(text.replace(/^[^:]+/, (scheme) => scheme.toLowerCase()))
  if (/^https?:\/\//i.test(text)) return readPageAddress(text)
  return toPerson(text)
}

function readDiasporaLink(text: string): PastedLink | undefined {
  const [link] = readLinks(text)
  if (link !== undefined) return { to: 'entity', link }
  const [, address = ''] = /^(?:web\+)?diaspora:\/\/([^/]+)\/?$/.exec(text) ?? []
  return toPerson(address)
}

/** Paths of diaspora*; query and fragment do not matter. */
function readPageAddress(text: string): PastedLink | undefined {
  if (!isUrl(text)) return undefined
  const { host, pathname, username, password } = new URL(text)
  if (username !== '' || password !== '' || host.length > MAX_HOST_CHARACTERS) return undefined
  const [, page, name = ''] = /^\/(posts|p|people|u)\/([^/]+)\/?$/.exec(pathname) ?? []
  if (page === 'u') return toPerson(`${name}@${host}`)
  if (page === undefined || !isGuid(name)) return undefined
  return { to: page === 'people' ? 'profile' : 'post', host, guid: name }
}

function toPerson(text: string): PastedLink | undefined {
  const address = parseAddress(text)
  return address === undefined ? undefined : { to: 'person', address }
}
