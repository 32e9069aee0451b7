import { isUrl } from './is-url.js'
import { isWithinLength } from './values.js'

/** `name@host`, with a port after the host if it is not the default one. */
export interface Address {
  readonly name: string
  readonly host: string
}

const MAX_CHARACTERS = 255

// Lower-case letters and digits of every script, as in diaspora*: älice@bücher.example is an address.
const shape =
  /^(?<name>[\p{Ll}\p{Nd}._-]+)@(?<host>(?:[\p{Ll}\p{Nd}-]+(?:\.[\p{Ll}\p{Nd}-]*)*|(?<ipv6>\[[0-9a-f:.]{2,45}\]))(?::[0-9]+)?)$/u

export function isAddress(text: string): boolean {
  return splitAddress(text) !== undefined
}

export function splitAddress(text: string): Address | undefined {
  // Keeps the pattern away from long texts: 255 code points have at most twice as many UTF-16 units.
  if (text.length > 2 * MAX_CHARACTERS) return undefined
  const groups = shape.exec(text)?.groups
  const { name, host, ipv6 } = groups ?? {}
  if (name === undefined || host === undefined) return undefined
  if (!isWithinLength(text, MAX_CHARACTERS)) return undefined
  if (ipv6 !== undefined && !isUrl(`http://${ipv6}/`)) return undefined
  return { name, host }
}

/** Normalises an address from user input or a link (`acct:Alice@Pod.example`). */
export function parseAddress(text: string): string | undefined {
  const address = text
    .trim()
    .replace(/^acct:/i, '')
    .toLowerCase()
  return isAddress(address) ? address : undefined
}

/** The host of an address: with the port if it is not the default one. */
export function formatAddressHost({ host, port }: { readonly host: string; readonly port: number }): string {
  return port === 443 ? host : `${host}:${port}`
}
