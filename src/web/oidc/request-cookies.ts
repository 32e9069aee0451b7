import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { OIDC_LIMITS } from './limits.js'

const PREFIX = 'pod_request_'
const OPTIONS = { httpOnly: true, sameSite: 'lax', signed: true, path: '/' } as const

type Cookies = KoaContextWithOIDC['cookies']

/** Gives each authorization request its own cookie, so that a browser can have several at the same time. */
export function preserveRequestCookies(provider: Provider): void {
  provider.on('interaction.started', (ctx) => {
    const uid = ctx.oidc.entities.Interaction?.uid
    if (uid === undefined) return
    const requestCookies = namesIn(ctx.req.headers.cookie).map((name) => ({
      name,
      begun: readStartTime(ctx.cookies, name),
    }))
    requestCookies.sort((one, other) => other.begun - one.begun)
    for (const { name } of requestCookies.slice(OIDC_LIMITS.requestsOfBrowser - 1)) ctx.cookies.set(name, null, OPTIONS)
    ctx.cookies.set(`${PREFIX}${uid}`, Date.now().toString(36), {
      ...OPTIONS,
      maxAge: OIDC_LIMITS.interactionSeconds * 1_000,
    })
  })
}

export function hasBegunRequest(cookies: Cookies, uid: string): boolean {
  return /^[\w-]+$/.test(uid) && cookies.get(`${PREFIX}${uid}`, OPTIONS) !== undefined
}

function namesIn(header = ''): readonly string[] {
  return header.split(/; */).flatMap((pair) => /^(pod_request_[\w-]+)=/.exec(pair)?.[1] ?? [])
}

/** Zero: the signature of the cookie is invalid. */
function readStartTime(cookies: Cookies, name: string): number {
  return Number.parseInt(cookies.get(name, OPTIONS) ?? '0', 36)
}
