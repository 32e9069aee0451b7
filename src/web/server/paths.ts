/**
 * The path as routes know it: known clients write `/api/v1//posts`, documented ones `/api/v1/user.json`, and some a slash
 * at the end. The query stays as it is. What cannot be decoded is taken literally, so that it is simply an unknown path.
 */
export function routedUrl(url: string): string {
  const [path, query] = split(withoutOrigin(url))
  const plain = decodable(path) ? path : path.replaceAll('%', '%25')
  const single = withoutDisguise(plain).replace(/\/{2,}/g, '/')
  const open = single.length > 1 ? single.replace(/\/$/, '') : single
  return (open.startsWith('/api/v1/') ? open.replace(/\.json$/, '') : open) + query
}

/** The part before the query; the only part of an address that may be compared, logged or shown. */
export function pathOf(url: string): string {
  return split(url)[0]
}

/** Answers of these paths are JSON, errors included. */
export function answersJson(path: string): boolean {
  if (isInteractive(path)) return false
  return isBelow(path, '/api') || isBelow(path, '/health')
}

/** Errors of these paths have the form of OAuth 2.0. */
export function isOpenIdConnect(path: string): boolean {
  return isBelow(path, '/api/openid_connect')
}

/** Answers of these paths are somebody's own, whatever they are. */
export function isPrivate(path: string): boolean {
  return (isBelow(path, '/api') || isBelow(path, '/users')) && !isBelow(path, '/api/docs')
}

/** Web apps of other origins may use these. Pages on which a person decides something are not for them. */
export function isForOtherOrigins(path: string): boolean {
  return !isInteractive(path) && OPEN.some((open) => isBelow(path, open))
}

const OPEN = [
  '/api',
  '/.well-known/webfinger',
  '/.well-known/openid-configuration',
  '/.well-known/nodeinfo',
  '/nodeinfo',
] as const

/** A person decides something here. */
function isInteractive(path: string): boolean {
  return INTERACTIVE.some((page) => isBelow(path, page))
}

const INTERACTIVE = ['/api/openid_connect/authorizations', '/api/openid_connect/user_applications'] as const

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}

/** A client may name the whole address in the first line, as to a proxy. */
function withoutOrigin(url: string): string {
  const path = url.replace(/^https?:\/\/[^/?#]*/i, '')
  return path.startsWith('/') ? path : `/${path}`
}

function split(url: string): [path: string, query: string] {
  const end = url.search(/[?#]/)
  return end === -1 ? [url, ''] : [url.slice(0, end), url.slice(end)]
}

/** A letter is the same letter when it is encoded; the router knows that, and so must whatever compares paths. */
function withoutDisguise(path: string): string {
  return path.replace(/%[0-9A-Fa-f]{2}/g, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16))
    return /[0-9A-Za-z._~-]/.test(character) ? character : code
  })
}

function decodable(path: string): boolean {
  if (!path.includes('%')) return true
  try {
    decodeURIComponent(path)
    return true
  } catch {
    return false
  }
}
