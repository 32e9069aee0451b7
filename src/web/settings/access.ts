import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { FactorOwner } from '../../domain/accounts/factors/second-factor.js'
import { ALL_SCOPES } from '../../domain/accounts/scopes.js'
import { findOwnAccount, type OwnAccount } from '../../domain/accounts/staff.js'
import type { Viewer } from '../../domain/accounts/viewers.js'
import type { RateLimit } from '../limits/rate-limit.js'
import { openWriteLimit } from '../limits/write-limit.js'
import { type Browser, getBrowser, type SignedInSession } from '../oidc/browser.js'
import { formText } from '../oidc/form-text.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import type { PageTexts } from '../pages/language/page-texts.js'
import { keptLanguage, setLanguageCookie, textsFor } from '../pages/language/request-language.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the form, which has a file, and checks its token. */
    checksForm?: true
    /** Also for a person who is closing the account; other pages lead to `/settings/close`. */
    whileClosing?: true
  }

  interface FastifyRequest {
    /** The signed-in person. Only routes with `member` have one; on others the getter throws. */
    readonly member: Member
    signedInMember: Member | undefined
  }
}

interface Member {
  readonly account: OwnAccount
  readonly session: SignedInSession
  readonly browser: Browser
  /** The messages in the language of the person. */
  readonly t: PageTexts
  /** The same person for use cases. */
  readonly viewer: Viewer
  /** The same person for changes of second factors and the password. */
  readonly owner: FactorOwner
}

const SCOPES = new Set(ALL_SCOPES.filter((scope) => scope !== 'moderation' && scope !== 'administration'))

/**
 * Checks every request to a route with `member`. Visitors are sent to the sign-in page and back. A change needs the form token of the
 * session, and routes with `proof` need a recent authentication.
 */
export function addMemberAccess(app: FastifyInstance): void {
  app.decorateRequest('signedInMember', undefined)
  app.decorateRequest('member', {
    getter() {
      const { signedInMember } = this as FastifyRequest
      if (signedInMember === undefined) throw new Error('Only routes with `member` have a signed-in person.')
      return signedInMember
    },
  })

  app.addHook('onRequest', async (request, reply) => {
    if (request.routeOptions.config.member === undefined) return
    const browser = await getBrowser(app, request, reply)
    const session = await browser.signedIn()
    const account = session && (await findOwnAccount(app.pod, session.address))
    if (session === undefined || account === undefined) return redirectToSignIn(request, reply)
    const { userId, personId, address, role, language } = account
    // Public pages read no account: they have the language of the cookie.
    if (keptLanguage(request.headers.cookie) !== language) setLanguageCookie(reply, language)
    if (account.closeAt !== null && !request.routeOptions.config.whileClosing)
      return reply.redirect('/settings/close', 303)
    request.signedInMember = {
      ...{ account, session, browser },
      t: textsFor(request, reply, { setting: account.language }),
      viewer: { userId, personId, scopes: SCOPES },
      owner: { userId, address, role, sessionUid: session.uid },
    }
  })

  let countWrite: RateLimit<number> | undefined
  app.addHook('preHandler', async (request, reply) => {
    const { member: needed, checksForm } = request.routeOptions.config
    if (needed === undefined) return
    const { member } = request
    if (request.method === 'POST' && !checksForm) member.session.checkForm(formText(request, 'form'))
    if (request.method === 'POST') {
      countWrite ??= openWriteLimit(app.pod)
      countWrite(member.owner.userId)
    }
    if (needed === 'proof') return app.stepUp.require(request, reply, member)
  })
}

function redirectToSignIn({ method, originalUrl }: FastifyRequest, reply: FastifyReply): FastifyReply {
  const returnTo = method === 'GET' || method === 'HEAD' ? originalUrl : '/settings'
  return reply.redirect(`${OIDC_PATHS.signIn}?return_to=${encodeURIComponent(returnTo)}`, 303)
}
