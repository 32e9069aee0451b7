import type { FastifyInstance, FastifyRequest } from 'fastify'
import { lacksStaffFactor } from '../../domain/accounts/factors/second-factor.js'
import { hasPower } from '../../domain/accounts/role-powers.js'
import { type AccountWithRole, findAccountWithRole } from '../../domain/accounts/staff.js'
import { type Actor, actorOfAccount } from '../../domain/moderation/actor.js'
import { parseNetworkList } from '../../networks/trusted-proxies.js'
import type { Role } from '../../persistence/models/user.js'
import { isUrl } from '../../protocol/is-url.js'
import { formText } from '../forms/form-text.js'
import { type Browser, getBrowser, type SignedInSession } from '../oidc/browser.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import { RequestFault } from '../server/request-faults.js'

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
  /** The signed-in person as actor of use cases and the audit log. */
  readonly actor: Actor
  readonly formToken: {
    /** Token of forms of the console, bound to the session. */
    readonly console: string
    /** Token of the form that signs out. */
    readonly page: string
  }
  readonly session: SignedInSession
  readonly browser: Browser
}

/**
 * Checks every request to a route with `power`. Visitors are sent to the sign-in page and back; users without the power get 404, as if
 * there were no console. A change needs the form token of the session, an own origin, and a recent proof of who the person is.
 */
export function addConsoleAccess(app: FastifyInstance): void {
  const { services } = app
  const isAllowedNetwork = parseNetworkList(services.config.consoleNetworks)

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
    if (!isAllowedNetwork(request.ip)) throw pageNotFound()
    const browser = await getBrowser(app, request, reply)
    const session = await browser.findSession()
    const account = session && (await findAccountWithRole(request.services, { 'person.address': session.address }))
    if (session === undefined || account === undefined) return reply.redirect(signInPath(request), 303)
    const { role } = account
    if (role === null) throw pageNotFound()
    if (!hasPower(role, power)) throw new RequestFault(403, 'This page is for admins of the pod.')
    if (await lacksStaffFactor(request.services, account)) return reply.redirect('/settings/two_factor?needed=1', 303)
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
    const { session, browser, staff: account } = request.console
    session.checkForm(formText(request, 'form'))
    return app.stepUp.require(request, reply, { session, browser, account })
  })
}

/** Pages send no referrer, so that browsers may send `Origin: null`; then only the form token and `Sec-Fetch-Site` decide. */
function checkOrigin({ headers, host, server }: FastifyRequest): void {
  const { origin } = headers
  const site = headers['sec-fetch-site']
  const isOwn =
    origin === undefined ||
    origin === 'null' ||
    origin === server.services.config.url ||
    (isUrl(origin) && new URL(origin).host === host)
  if (!isOwn || (site !== undefined && site !== 'same-origin')) {
    throw new RequestFault(403, 'This form was sent by another site.')
  }
}

function signInPath({ method, originalUrl }: FastifyRequest): string {
  const returnTo = method === 'GET' || method === 'HEAD' ? originalUrl : '/admin'
  return `${OIDC_PATHS.signIn}?return_to=${encodeURIComponent(returnTo)}`
}

function pageNotFound(): RequestFault {
  return new RequestFault(404, 'There is nothing here.')
}
