import { isUrl } from '../../protocol/is-url.js'
/** The address of a Redis: one server, a cluster, or a master that Sentinels know. */
export type RedisAddress =
  | { readonly kind: 'single'; readonly address: string }
  | ({ readonly kind: 'cluster'; readonly nodes: readonly HostAndPort[] } & Access)
  | ({
      readonly kind: 'sentinel'
      readonly sentinels: readonly HostAndPort[]
      /** The name of the master at the Sentinels. */
      readonly master: string
      readonly db: number
      readonly sentinelPassword: string | undefined
    } & Access)

interface HostAndPort {
  readonly host: string
  readonly port: number
}

interface Access {
  readonly tls: boolean
  readonly username: string | undefined
  readonly password: string | undefined
}

const SENTINEL_PASSWORD = 'sentinel_password'

/** Undefined: not an address of a Redis. */
export function readRedisAddress(text: string): RedisAddress | undefined {
  const socket = /^unix:(?:\/\/)?(.+)$/.exec(text)?.[1]
  if (socket !== undefined) return { kind: 'single', address: socket }
  const parts = partsOf(text)
  if (parts === undefined) return isSingle(text) ? { kind: 'single', address: text } : undefined
  const { kind, access, hosts, path, query } = parts
  const nodes = hosts.split(',').map((host) => hostAndPort(host, kind === 'cluster' ? 6379 : 26_379))
  if (!nodes.every((node) => node !== undefined)) return undefined
  if (kind === 'cluster') return path === '' && query === '' ? { kind, nodes, ...access } : undefined

  const [, master, db = '0'] = /^([\w.-]+)(?:\/(\d{1,4}))?$/.exec(path) ?? []
  const others = [...new URLSearchParams(query).keys()].filter((name) => name !== SENTINEL_PASSWORD)
  if (master === undefined || others.length > 0) return undefined
  const sentinelPassword = new URLSearchParams(query).get(SENTINEL_PASSWORD) ?? undefined
  return { kind, sentinels: nodes, master, db: Number(db), sentinelPassword, ...access }
}

/** The address without passwords, for logs and output. */
export function withoutRedisPassword(text: string): string {
  return text
    .replace(/(:\/\/[^:@/]*):[^@]*@/, '$1:***@')
    .replace(/([?&][^=&]*(?:pass|key|secret)[^=&]*)=[^&]*/gi, '$1=***')
}

/** The server as messages to the operator name it. */
export function describeRedisTarget(text: string): string {
  const redisAddress = readRedisAddress(text)
  const describeNodes = (nodes: readonly HostAndPort[]) => nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
  if (redisAddress?.kind === 'cluster') return `the Redis Cluster of ${describeNodes(redisAddress.nodes)}`
  if (redisAddress?.kind === 'sentinel')
    return `Redis, whose master ${redisAddress.master} is known to ${describeNodes(redisAddress.sentinels)}`
  return `Redis on ${text.startsWith('unix:') ? redisAddress?.address : new URL(text).host}`
}

/** Whether two addresses of single servers lead to the same database, as far as their texts say it. */
export function isSameRedis(one: string, other: string): boolean {
  return databaseOf(one) === databaseOf(other)
}

function databaseOf(text: string): string {
  if (!isSingle(text)) return text
  const { hostname, port, pathname, searchParams } = new URL(text)
  const host = ['localhost', '[::1]', ''].includes(hostname) ? '127.0.0.1' : hostname
  return `${host}:${port || 6379}/${Number(pathname.slice(1) || searchParams.get('db') || 0)}`
}

/** `URL` does not parse an address with several hosts. */
function partsOf(text: string) {
  const pattern = /^redis(s?)\+(cluster|sentinel):\/\/(?:([^@/?]*)@)?([^@/?#]+)(?:\/([^?#]*))?(?:\?([^#]*))?$/
  const [, secure, kind, user = '', hosts = '', path = '', query = ''] = pattern.exec(text) ?? []
  if (kind === undefined) return undefined
  const [, username = '', password = ''] = /^([^:]*):?(.*)$/s.exec(user) ?? []
  const access = { tls: secure === 's', username: decodePercent(username), password: decodePercent(password) }
  return { kind: kind === 'cluster' ? ('cluster' as const) : ('sentinel' as const), access, hosts, path, query }
}

function decodePercent(text: string): string | undefined {
  if (text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function hostAndPort(text: string, usual: number): HostAndPort | undefined {
  const [, bracketed, bare, port] = /^(?:\[([0-9a-f:.]+)\]|([^[\]:\s]+))(?::(\d{1,5}))?$/i.exec(text) ?? []
  const host = bracketed ?? bare
  const number = port === undefined ? usual : Number(port)
  return host === undefined || number < 1 || number > 65_535 ? undefined : { host, port: number }
}

function isSingle(text: string): boolean {
  return isUrl(text) && ['redis:', 'rediss:'].includes(new URL(text).protocol)
}
