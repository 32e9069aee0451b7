/**
 * Normalises the path for the router: existing clients send `/api/v1//posts`, `/api/v1/user.json` or a trailing slash. The query is
 * unchanged. A path that cannot be decoded is taken literally, so that it is an unknown path.
 */
export function routedUrl(url: string): string {
  const [path, query] = split(withoutOrigin(url))
  const valid = isDecodable(path) ? path : path.replaceAll('%', '%25')
  const singleSlashes = decodeUnreserved(valid).replace(/\/{2,}/g, '/')
  const trimmedPath = singleSlashes.length > 1 ? singleSlashes.replace(/\/$/, '') : singleSlashes
  return (/^\/api(?:\/admin)?\/v1\//.test(trimmedPath) ? trimmedPath.replace(/\.json$/, '') : trimmedPath) + query
}

/** The part before the query. Only this part of a URL may be compared, logged or shown. */
export function stripQuery(url: string): string {
  return split(url)[0]
}

/** Whether the responses of a path are JSON, errors included. */
export function isJsonPath(path: string): boolean {
  if (isInteractive(path)) return false
  return isBelow(path, '/api') || isBelow(path, '/health')
}

/** Whether errors of a path have the form of OAuth 2.0. */
export function isOpenIdConnect(path: string): boolean {
  return isBelow(path, '/api/openid_connect')
}

export function isConsole(path: string): boolean {
  return isBelow(path, '/admin')
}

/** Whether the responses of a path may hold private data. */
export function isPrivate(path: string): boolean {
  return (
    ['/api', '/users', '/settings', '/admin'].some((folder) => isBelow(path, folder)) && !isBelow(path, '/api/docs')
  )
}

/** Whether web apps of other origins may use a path. They may not use pages on which a person decides. */
export function isForOtherOrigins(path: string): boolean {
  return !isInteractive(path) && !isAdminApi(path) && CROSS_ORIGIN.some((folder) => isBelow(path, folder))
}

/** Only the origins of the setting ADMIN_API_ORIGINS use the admin API. */
export function isAdminApi(path: string): boolean {
  return isBelow(path, '/api/admin')
}

const CROSS_ORIGIN = [
  '/api',
  '/.well-known/webfinger',
  '/.well-known/openid-configuration',
  '/.well-known/nodeinfo',
  '/nodeinfo',
] as const

/** Whether a path is a page on which a person decides, such as the consent page. */
function isInteractive(path: string): boolean {
  return INTERACTIVE.some((page) => isBelow(path, page))
}

const INTERACTIVE = ['/api/openid_connect/authorizations', '/api/openid_connect/user_applications'] as const

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** A request line may hold an absolute URL, as sent to a proxy (RFC 9112, 3.2.2). */
function withoutOrigin(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('/') ? path : `/${path}`
}

function split(url: string): [path: string, query: string] {
  const end = url.search(/[?#]/)
  return end === -1 ? [url, ''] : [url.slice(0, end), url.slice(end)]
}

/** Decodes unreserved characters (RFC 3986, 2.3), as the router does, so that paths can be compared as texts. */
function decodeUnreserved(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return /[0-9A-Za-z._~-]/.test(character) ? character : code
  })
}

function isDecodable(path: string): boolean {
  if (!path.includes('%')) return true
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
