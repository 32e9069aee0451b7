import { splitList } from '../config/split-list.js'
import { isUrl } from '../protocol/is-url.js'

/** The hosts in private networks that this pod may connect to, each as `host:port`; public hosts need no permission. */
export type AllowPrivate = 'none' | 'all' | ReadonlySet<string>

/** Reads the setting ALLOW_PRIVATE_ADDRESSES; an error is added to the faults, as a sentence. */
export function readAllowPrivate(text: string | undefined, faults: string[]): AllowPrivate {
  const setting = (text ?? '').trim().toLowerCase()
  if (setting === '' || setting === 'false') return 'none'
  if (setting === 'true') return 'all'

  const items = splitList(setting)
  const invalidItems = items.filter((item) => hostAndPortOf(item) === undefined)
  if (invalidItems.length > 0) {
    faults.push(
      `ALLOW_PRIVATE_ADDRESSES must be true, or a list of host:port like localhost:3001,127.0.0.1:3002; this is not one: ${invalidItems.join(', ')}.`,
    )
  }
  return new Set(items.flatMap((item) => hostAndPortOf(item) ?? []))
}

/** A warning for the operator; undefined: the setting allows nothing. */
export function privateAddressesWarning(allow: AllowPrivate): string | undefined {
  if (allow === 'none') return undefined
  const hosts = allow === 'all' ? 'every private address' : [...allow].join(', ')
  return `ALLOW_PRIVATE_ADDRESSES lets anyone make this pod send requests to ${hosts}; use it for tests and development only.`
}

/** Whether the setting names exactly this host and port, in any spelling. */
export function isPrivateHostAllowed(allow: AllowPrivate, url: URL): boolean {
  if (typeof allow === 'string') return allow === 'all'
  return allow.has(`${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`)
}

function hostAndPortOf(item: string): string | undefined {
  const [, port] = /^[^/?#@*\\\s]+:([0-9]{1,5})$/.exec(item) ?? []
  const number = Number(port)
  if (!(number >= 1 && number <= 65_535) || !isUrl(`http://${item}/`)) return undefined
  return `${new URL(`http://${item}/`).hostname}:${number}`
}
