import { isUrl } from './protocol/is-url.js'
/** Which addresses of private networks this pod may ask, each as `host:port`; public ones need no permission. */
export type AllowPrivate = 'none' | 'all' | ReadonlySet<string>

/** Reads the setting ALLOW_PRIVATE_ADDRESSES; what is wrong with it is added to the faults, in a sentence. */
export function readAllowPrivate(text: string | undefined, faults: string[]): AllowPrivate {
  const setting = (text ?? '').trim().toLowerCase()
  if (setting === '' || setting === 'false') return 'none'
  if (setting === 'true') return 'all'

  const items = setting
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
  const wrong = items.filter((item) => hostAndPortOf(item) === undefined)
  if (wrong.length > 0) {
    faults.push(
      `ALLOW_PRIVATE_ADDRESSES must be true, or a list of host:port like localhost:3001,127.0.0.1:3002; this is not one: ${wrong.join(', ')}.`,
    )
  }
  return new Set(items.flatMap((item) => hostAndPortOf(item) ?? []))
}

/** What the operator should know about this setting, in a sentence; undefined: nothing is opened. */
export function privateAddressesWarning(allow: AllowPrivate): string | undefined {
  if (allow === 'none') return undefined
  const opened = allow === 'all' ? 'every private address' : [...allow].join(', ')
  return `ALLOW_PRIVATE_ADDRESSES lets strangers make this pod ask ${opened}; it is for tests and playgrounds only.`
}

/** True for exactly the hosts and ports that the setting names, in whatever spelling. */
export function isOpened(allow: AllowPrivate, url: URL): boolean {
  if (typeof allow === 'string') return allow === 'all'
  return allow.has(`${url.hostname}:${url.port || (url.protocol === 'https:' ? 443 : 80)}`)
}

function hostAndPortOf(item: string): string | undefined {
  const [, port] = /^[^/?#@*\\\s]+:([0-9]{1,5})$/.exec(item) ?? []
  const number = Number(port)
  if (!(number >= 1 && number <= 65_535) || !isUrl(`http://${item}/`)) return undefined
  return `${new URL(`http://${item}/`).hostname}:${number}`
}
