import { Pod as RemotePod } from '../../persistence/models/pod.js'
import type { Pod } from '../../pod/pod.js'
import { parseAddress, splitAddress } from '../../protocol/address.js'
import { isUrl } from '../../protocol/is-url.js'

/** Pages on which members follow a person, by the software of their pod; `{address}` is the person's address. */
const FOLLOW_PAGES: Readonly<Record<string, string>> = {
  friendica: '/contact/follow?url={address}',
  hubzilla: '/follow?f=&url={address}',
}
const DEFAULT_FOLLOW_PAGE = '/people?q={address}'

/**
 * Finds the page of another pod on which its members can follow a local person. `entered` is the host of that pod, its URL, or an
 * address there. Undefined: it is none of these, or it is this pod.
 */
export async function findFollowUrl(
  pod: Pick<Pod, 'db' | 'config'>,
  address: string,
  entered: string,
): Promise<string | undefined> {
  const host = hostOf(entered)
  if (host === undefined || host === pod.config.host) return undefined
  const origin = `https://${host}`
  if (!isUrl(origin)) return undefined
  const { hostname, port, href } = new URL(origin)
  const remotePod = await RemotePod.query(pod.db)
    .select('software')
    .findOne({ host: hostname, port: port === '' ? 443 : Number(port) })
  const path = FOLLOW_PAGES[remotePod?.software?.toLowerCase() ?? ''] ?? DEFAULT_FOLLOW_PAGE
  return new URL(path.replace('{address}', encodeURIComponent(address)), href).href
}

/** Reads `pod.example`, `https://pod.example/…`, `alice@pod.example`. */
function hostOf(entered: string): string | undefined {
  const text = entered
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\//, '')
    .replace(/\/.*$/s, '')
    .replace(/^@/, '')
  const address = parseAddress(text.includes('@') ? text : `someone@${text}`)
  const host = address && splitAddress(address)?.host
  return host?.includes('.') || host?.startsWith('localhost') ? host : undefined
}
