import type { IncomingHttpHeaders } from 'node:http'
import { parsePlainAddress } from '../../../networks/ip-address.js'
import { formatNetwork } from '../../../networks/network-source.js'
import { updateSessionUse } from '../../../persistence/accounts/browser-sessions.js'
import type { Services } from '../../../services/services.js'
import { describeBrowser } from './describe-browser.js'
import { LEVELS } from './levels.js'

/** The fields of a session of the authorization server that its list shows. */
export interface UsedSession {
  readonly uid?: string | undefined
  readonly accountId?: string | undefined
  readonly loginTs?: number | undefined
  readonly acr?: string | undefined
  readonly amr?: readonly string[] | undefined
}

/** Records that a browser used its session, for the list of sessions. A session without an account is not listed. */
export async function recordSessionUse(
  services: Pick<Services, 'db' | 'now'>,
  { uid, accountId, loginTs, acr, amr }: UsedSession,
  { ip, headers }: { readonly ip: string; readonly headers: IncomingHttpHeaders },
): Promise<void> {
  if (uid === undefined || accountId === undefined) return
  const at = services.now()
  await updateSessionUse(services.db, {
    uid,
    address: accountId,
    at,
    authenticatedAt: loginTs === undefined ? at : new Date(loginTs * 1_000),
    acr: acr ?? LEVELS.password.acr,
    amr: amr ?? LEVELS.password.amr,
    network: formatNetwork(ip),
    ip: parsePlainAddress(ip),
    browser: describeBrowser(headers['user-agent']),
  })
}
