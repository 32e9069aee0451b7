import { ProtocolError } from '../errors.js'
import { readMember } from '../json-member.js'

/** The software that a pod reports. */
export interface NodeInfo {
  readonly software: string
  readonly version: string
  /** The names of the supported protocols. */
  readonly protocols: readonly string[]
  /** The operator: a user name or an address. Null: not named. */
  readonly adminAccount: string | null
}

const schema = 'http://nodeinfo.diaspora.software/ns/schema/'
/** Newest first. */
const versions = ['2.1', '2.0', '1.0'] as const

/** The link to the newest readable NodeInfo document. Throws `ValidationError` if there is none. */
export function readNodeInfoLink(json: string): string {
  const links = readMember(parse(json), 'links')
  const all: readonly unknown[] = Array.isArray(links) ? links : []
  for (const version of versions) {
    const href = readMember(
      all.find((link) => readMember(link, 'rel') === schema + version),
      'href',
    )
    if (typeof href === 'string') return href
  }
  throw invalidNodeInfo('no document of version 2.1, 2.0 or 1.0 is named')
}

/** Throws `ValidationError` unless the document names software, version and protocols. */
export function readNodeInfo(json: string): NodeInfo {
  const document = parse(json)
  const software = readMember(document, 'software')
  const name = readMember(software, 'name')
  const version = readMember(software, 'version')
  if (typeof name !== 'string' || !/^[a-z0-9-]{1,64}$/.test(name))
    throw invalidNodeInfo('the software has no usable name')
  if (typeof version !== 'string' || version === '' || version.length > 255)
    throw invalidNodeInfo('the software has no version')
  const adminAccount = adminAccountOf(readMember(readMember(document, 'metadata'), 'adminAccount'))
  return { software: name, version, protocols: protocolsOf(readMember(document, 'protocols')), adminAccount }
}

function adminAccountOf(account: unknown): string | null {
  const isAccount =
    typeof account === 'string' && account.length <= 255 && /^[a-z0-9_.-]+(@[a-z0-9.:-]+)?$/i.test(account)
  return isAccount ? account.toLowerCase() : null
}

/** Versions 2.x have one list, version 1.0 has one for each direction. */
function protocolsOf(protocols: unknown): readonly string[] {
  const lists = Array.isArray(protocols)
    ? [protocols]
    : [readMember(protocols, 'inbound'), readMember(protocols, 'outbound')]
  const names = lists.flatMap((list) => (Array.isArray(list) ? list : []))
  if (names.length === 0) throw invalidNodeInfo('no protocols are named')
  return [...new Set(names.filter((name) => typeof name === 'string'))]
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw invalidNodeInfo('this is not JSON', cause)
  }
}

function invalidNodeInfo(reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError('ValidationError', reason, { cause })
}
