import { isUrl } from '../protocol/is-url.js'

/** Adds a fault if the address does not begin with one of the schemes, like `https:`. */
export function checkAddressScheme(
  name: string,
  text: string | undefined,
  schemes: readonly string[],
  faults: string[],
): void {
  if (text === undefined) return
  if (isUrl(text) && schemes.includes(new URL(text).protocol)) return
  faults.push(`${name} must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}.`)
}
