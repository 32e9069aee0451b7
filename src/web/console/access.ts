import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { hasPower } from '../../domain/accounts/role-powers.js'
import { isPassword } from '../../domain/accounts/sign-in.js'
import { type AccountWithRole, findAccountWithRole } from '../../domain/accounts/staff.js'
import { type Actor, actorOfAccount } from '../../domain/moderation/actor.js'
import { openNetworkList } from '../../networks/trusted-proxies.js'
import type { Role } from '../../persistence/models/user.js'
import { isUrl } from '../../protocol/is-url.js'
import { countRateLimited, countSignInFailure } from '../limits/rejection-metrics.js'
import { type Browser, browserOf, type SignedInSession } from '../oidc/browser.js'
import { formText } from '../oidc/form-text.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import { openWrongPasswords } from '../oidc/wrong-passwords.js'
import { RequestFault } from '../server/request-faults.js'
import { confirmPasswordPage } from './confirm-password-page.js'
import { sendConsolePage } from './console-page.js'
import { CONSOLE_LIMITS } from './limits.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The person at the console. Only routes with `power` have one; on others the getter throws. */
    readonly console: ConsoleAccess
    consoleAccess: ConsoleAccess | undefined
  }
}

interface Staff extends AccountWithRole {
  readonly role: Role
}

interface ConsoleAccess {
  readonly staff: Staff
  /** The same person for use cases and the audit log. */
  readonly actor: Actor
  readonly formToken: {
    /** For forms of the console: bound to the session. */
    readonly console: string
    /** For the form that signs out. */
    readonly page: string
  }
  readonly session: SignedInSession
  readonly browser: Browser
}

/**
 * Checks every request to a route with `power`. Visitors are sent to the sign-in page and back; members get 404, as if there were
 * no console. A change needs the form token of the session, an own origin, and a password that was given a short time ago.
 */
export function addConsoleAccess(app: FastifyInstance): void {
  const { pod } = app
  const isAllowedNetwork = openNetworkList(pod.config.consoleNetworks)
  const wrongPasswords = openWrongPasswords(() => pod.now())
  const wrongInSession = new LRUCache<string, number>({
    max: CONSOLE_LIMITS.sessionsWithWrongPasswords,
    ttl: CONSOLE_LIMITS.passwordSeconds * 1_000,
  })

  app.decorateRequest('consoleAccess', undefined)
  app.decorateRequest('console', {
    getter() {
      const { consoleAccess } = this as FastifyRequest
      if (consoleAccess === undefined) throw new Error('Only routes with `power` have a person at the console.')
      return consoleAccess
    },
  })

  app.addHook('onRequest', async (request, reply) => {
    const { power } = request.routeOptions.config
    if (power === undefined) return
    if (!isAllowedNetwork(request.ip)) throw nothingHere()
    const browser = await browserOf(app, request, reply)
    const session = await browser.signedIn()
    const account = session && (await findAccountWithRole(pod, { 'person.address': session.address }))
    if (session === undefined || account === undefined) return reply.redirect(signInPath(request), 303)
    const { role } = account
    if (role === null) throw nothingHere()
    if (!hasPower(role, power)) throw new RequestFault(403, 'This page is for admins of the pod.')
    request.consoleAccess = {
      staff: { ...account, role },
      actor: actorOfAccount({ ...account, role }, { via: 'console', traceId: request.id }),
      formToken: { console: session.formToken, page: browser.formToken() },
      session,
      browser,
    }
  })

  app.addHook('preHandler', async (request, reply) => {
    if (request.method !== 'POST' || request.consoleAccess === undefined) return
    checkOrigin(request)
    const { session } = request.console
    session.checkForm(formText(request, 'form'))
    const age = pod.now().getTime() - session.passwordGivenAt.getTime()
    if (age > CONSOLE_LIMITS.passwordSeconds * 1_000) return requirePassword(request, reply)
  })

  /** Continues with the action if the form has the password; else shows a form that asks for it and keeps all other fields. */
  async function requirePassword(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> {
    const { session, staff, browser } = request.console
    const password = formText(request, 'current_password')
    if (password === undefined) return sendConsolePage(request, reply, confirmPasswordPage(request))
    const wait = wrongPasswords.waitFor(request.ip, staff.username)
    if (wait !== undefined) {
      countRateLimited('wrong_passwords')
      return sendConsolePage(
        request,
        reply.headers(wait.headers),
        confirmPasswordPage(request, wait.message, wait.status),
      )
    }
    if (await isPassword(pod, staff.userId, password)) {
      wrongPasswords.forget(request.ip, staff.username)
      await session.recordPassword(pod.now())
      return undefined
    }
    wrongPasswords.count(request.ip, staff.username)
    countSignInFailure('credentials')
    const times = (wrongInSession.get(session.formToken) ?? 0) + 1
    wrongInSession.set(session.formToken, times)
    if (times < CONSOLE_LIMITS.wrongPasswords) {
      return sendConsolePage(request, reply, confirmPasswordPage(request, 'The password is wrong.', 422))
    }
    await browser.signOut()
    return reply.redirect(OIDC_PATHS.signIn, 303)
  }
}

/** Pages send no referrer, so that browsers may send `Origin: null`; then only the form token and `Sec-Fetch-Site` decide. */
function checkOrigin({ headers, host, server }: FastifyRequest): void {
  const { origin } = headers
  const site = headers['sec-fetch-site']
  const isOwn =
    origin === undefined ||
    origin === 'null' ||
    origin === server.pod.config.url ||
    (isUrl(origin) && new URL(origin).host === host)
  if (!isOwn || (site !== undefined && site !== 'same-origin')) {
    throw new RequestFault(403, 'This form was sent by another site.')
  }
}

function signInPath({ method, originalUrl }: FastifyRequest): string {
  const returnTo = method === 'GET' || method === 'HEAD' ? originalUrl : '/admin'
  return `${OIDC_PATHS.signIn}?return_to=${encodeURIComponent(returnTo)}`
}

function nothingHere(): RequestFault {
  return new RequestFault(404, 'There is nothing here.')
}
