import { readNetworkList } from '../networks/trusted-proxies.js'
import { isUrl } from '../protocol/is-url.js'
import { splitList } from './split-list.js'
import type { Environment } from './variables.js'

/** How moderators and admins reach the console and the admin API. */
export function readStaffAccess(variables: Environment, faults: string[]) {
  return {
    console: variables.ADMIN_CONSOLE === 'on',
    consoleNetworks: readNetworkList('ADMIN_CONSOLE_NETWORKS', variables.ADMIN_CONSOLE_NETWORKS, faults),
    adminApiOrigins: readOrigins('ADMIN_API_ORIGINS', variables.ADMIN_API_ORIGINS, faults),
    staffSecondFactor: variables.STAFF_SECOND_FACTOR === 'on',
  }
}

/** Browsers send an origin in this form alone: lower case, without a path and a default port. */
function readOrigins(name: string, text: string, faults: string[]): readonly string[] {
  const origins = splitList(text)
  for (const origin of origins) {
    const isOrigin = /^https?:\/\//.test(origin) && isUrl(origin) && new URL(origin).origin === origin
    if (!isOrigin) faults.push(`${name} has ${origin}, which is not an origin like https://admin.example.`)
  }
  return origins
}
