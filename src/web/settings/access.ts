import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FactorOwner } from '../../domain/accounts/factors/second-factor.js'
import { ALL_SCOPES } from '../../domain/accounts/scopes.js'
import { findOwnAccount, type OwnAccount } from '../../domain/accounts/staff.js'
import type { Viewer } from '../../domain/accounts/viewers.js'
import { formText } from '../forms/form-text.js'
import type { RateLimit } from '../limits/rate-limit.js'
import { openWriteLimit } from '../limits/write-limit.js'
import { type Browser, getBrowser, type SignedInSession } from '../oidc/browser.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import type { PageTexts } from '../pages/language/page-texts.js'
import { cookieLanguage, setLanguageCookie, textsFor } from '../pages/language/request-language.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the form, which has a file, and checks its token. */
    checksForm?: true
    /** Whether a person who is closing the account may open the page; other pages lead to `/settings/close`. */
    whileClosing?: true
  }

  interface FastifyRequest {
    /** The signed-in person. Only routes with `requires` have one; on others the getter throws. */
    readonly signedIn: SignedInUser
    signedInUser: SignedInUser | undefined
  }
}

interface SignedInUser {
  readonly account: OwnAccount
  readonly session: SignedInSession
  readonly browser: Browser
  /** The messages in the language of the person. */
  readonly t: PageTexts
  /** The signed-in person as viewer of use cases. */
  readonly viewer: Viewer
  /** The signed-in person as owner of second factors and the password. */
  readonly owner: FactorOwner
}

const SCOPES = new Set(ALL_SCOPES.filter((scope) => scope !== 'moderation' && scope !== 'administration'))

/**
 * Checks every request to a route with `requires`. Visitors are sent to the sign-in page and back. A change needs the form token of the
 * session, and routes with `proof` need a recent authentication.
 */
export function addSignedInAccess(app: FastifyInstance): void {
  app.decorateRequest('signedInUser', undefined)
  app.decorateRequest('signedIn', {
    getter() {
      const { signedInUser } = this as FastifyRequest
      if (signedInUser === undefined) throw new Error('Only routes with `requires` have a signed-in person.')
      return signedInUser
    },
  })

  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.requires === undefined) return
    const browser = await getBrowser(app, request, reply)
    const session = await browser.findSession()
    const account = session && (await findOwnAccount(request.services, session.address))
    if (session === undefined || account === undefined) return redirectToSignIn(request, reply)
    const { userId, personId, address, role, language } = account
    // Public pages read no account: they have the language of the cookie.
    if (cookieLanguage(request.headers.cookie) !== language) setLanguageCookie(reply, language)
    if (account.closeAt !== null && !request.routeOptions.config.whileClosing)
      return reply.redirect('/settings/close', 303)
    request.signedInUser = {
      account,
      session,
      browser,
      t: textsFor(request, reply, { setting: account.language }),
      viewer: { userId, personId, scopes: SCOPES },
      owner: { userId, address, role, sessionUid: session.uid },
    }
  })

  let countWrite: RateLimit<number> | undefined
  app.addHook('preHandler', async (request, reply) => {
    const { requires, checksForm } = request.routeOptions.config
    if (requires === undefined) return
    const { signedIn } = request
    if (request.method === 'POST' && !checksForm) signedIn.session.checkForm(formText(request, 'form'))
    if (request.method === 'POST') {
      countWrite ??= openWriteLimit(app.services)
      countWrite(signedIn.owner.userId)
    }
    if (requires === 'proof') return app.stepUp.require(request, reply, signedIn)
  })
}

function redirectToSignIn({ method, originalUrl }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const returnTo = method === 'GET' || method === 'HEAD' ? originalUrl : '/settings'
  return reply.redirect(`${OIDC_PATHS.signIn}?return_to=${encodeURIComponent(returnTo)}`, 303)
}
