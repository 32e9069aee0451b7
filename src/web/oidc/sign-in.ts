import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findActiveUser } from '../../domain/accounts/authorizations.js'
import { findClient } from '../../domain/accounts/clients.js'
import { findRelyingParty } from '../../domain/accounts/factors/relying-party.js'
import { hasFactor } from '../../domain/accounts/factors/second-factor.js'
import { beginSecondStep, type FirstFactor } from '../../domain/accounts/factors/second-step.js'
import { endSessionsIfRevoked, normaliseUsername, type SignIn } from '../../domain/accounts/sign-in.js'
import { signInWithPassword } from '../../domain/accounts/sign-in-with-password.js'
import { mustConfirmNotices } from '../../domain/moderation/notices/user-notices.js'
import { findFactors } from '../../persistence/accounts/factors.js'
import { formText } from '../forms/form-text.js'
import { isFailedSignIn, limitAddresses } from '../limits/address-limit.js'
import { countRateLimited, countSignInFailure } from '../limits/rejection-metrics.js'
import { operatorContact } from '../pages/accounts/operator-contact.js'
import { type SignInErrors, signInPage } from '../pages/accounts/sign-in-page.js'
import { waitingPage } from '../pages/accounts/sign-up-page.js'
import { formPolicy } from '../pages/forms.js'
import type { PageTexts } from '../pages/language/page-texts.js'
import { textsFor } from '../pages/language/request-language.js'
import { queryText } from '../schemas/query-text.js'
import { type Browser, getBrowser, readUiLocales } from './browser.js'
import { OIDC_PATHS } from './paths.js'
import { requestsOnlyFactor } from './policy.js'
import { readReturnPath } from './return-path.js'
import { type Destination, TO_KEEP_ACCOUNT, withDestination } from './sign-in-destination.js'
import { openWrongPasswords } from './wrong-passwords.js'

interface BegunStep {
  readonly userId: number
  readonly first: FirstFactor
}

interface SignInContext {
  readonly destination: Destination
  /** The pending request of the client. */
  readonly interaction: Awaited<ReturnType<Browser['getInteraction']>> | undefined
  readonly passwordAt: Date
}

interface Attempt {
  readonly username: string
  readonly errors: (t: PageTexts) => SignInErrors
}

/**
 * Routes of the sign-in. Then the request of the client continues; without one, unread notices of the moderators or the start page follow.
 */
export const signInRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true } as const
  const schema = { hide: true }
  // Successful sign-ins are not limited.
  const limitSignIns = limitAddresses(services, 'signIns', isFailedSignIn)
  const hasPasskeys = findRelyingParty(services) !== undefined
  const wrongPasswords = openWrongPasswords(() => services.now())

  async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    browser: Browser,
    { uid, returnTo, attempt }: Destination & { readonly attempt?: Attempt },
  ) {
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    const params = interaction?.params ?? {}
    const client = interaction && (await findClient(request.services, String(params['client_id'])))
    const hint = normaliseUsername(request.services, String(params['login_hint'] ?? ''))
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    const { podName, host } = services.config
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: interaction !== undefined }))
      .send(
        signInPage({
          t,
          podName,
          host,
          action: OIDC_PATHS.signIn,
          formToken: browser.formToken(),
          username: attempt?.username ?? hint,
          request: uid,
          returnTo,
          clientName: client && (client.name ?? t('common.nameless_app')),
          errors: attempt?.errors(t) ?? {},
          resetPassword: services.config.mail === undefined ? undefined : OIDC_PATHS.newPassword,
          passkey: hasPasskeys ? withDestination(OIDC_PATHS.passkey, { uid, returnTo }) : undefined,
          signUp: services.config.registrations === 'open' ? withRequest(OIDC_PATHS.signUp, uid) : undefined,
          contact: operatorContact(t, services.config),
        }),
      )
  }

  app.get(OIDC_PATHS.signIn, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const uid = queryText(request, 'request')
    const returnTo = readReturnPath(queryText(request, 'return_to'))
    if (uid === undefined && (await browser.findSignedInAddress())) {
      return reply.redirect(returnTo ?? '/', 303)
    }
    const missingFactor = uid === undefined ? undefined : await findMissingFactor(browser, uid)
    if (missingFactor !== undefined)
      return reply.redirect(await beginStep(browser, missingFactor, { uid, returnTo }), 303)
    return show(request, reply, browser, { uid, returnTo })
  })

  /** The signed-in user of whom a client requests only the second factor. */
  async function findMissingFactor(browser: Browser, uid: string): Promise<BegunStep | undefined> {
    if (!requestsOnlyFactor(await browser.getInteraction(uid))) return undefined
    const session = await browser.findSession()
    const user = session && (await findActiveUser(services, session.address))
    if (!user || !hasFactor(await findFactors(services.db, user.id))) return undefined
    return { userId: user.id, first: { sessionUid: session.uid } }
  }

  /** Returns the path of the second step. */
  async function beginStep(browser: Browser, step: BegunStep, { uid, returnTo }: Destination): Promise<string> {
    browser.keepSecondStep(await beginSecondStep(services, { ...step, requestUid: uid, returnTo }))
    return withRequest(OIDC_PATHS.secondStep, uid)
  }

  app.post(OIDC_PATHS.signIn, { config, schema, ...limitSignIns }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const destination = { uid: formText(request, 'request'), returnTo: readReturnPath(formText(request, 'return_to')) }
    const username = normaliseUsername(request.services, formText(request, 'username') ?? '')
    const password = formText(request, 'password')
    // The page keeps the form, so that the request of the client is not lost.
    const refuse = (errors: Attempt['errors'], status = 422) =>
      show(request, reply.code(status), browser, { ...destination, attempt: { username, errors } })

    if (username === '' || password === undefined) {
      return refuse((t) => ({
        username: username === '' ? t('refusal.own_username_missing') : undefined,
        password: password === undefined ? t('refusal.own_password_missing') : undefined,
      }))
    }
    const wait = wrongPasswords.waitFor(request.ip, username)
    if (wait !== undefined) {
      countRateLimited('wrong_passwords')
      countSignInFailure('throttled')
      reply.headers(wait.headers)
      return refuse((t) => ({ notNow: wait.text?.(t) ?? wait.message }), wait.status)
    }
    const { uid } = destination
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    const passwordAt = services.now()
    const attempt = await signInWithPassword(request.services, username, password)
    if (attempt.state === 'pending') return sendWaitingPage(request, reply, attempt.waitsFor)
    if (attempt.state === 'moved') return refuse((t) => ({ notNow: t('sign_in.moved', { address: attempt.to }) }))
    if (attempt.state === 'wrong') {
      wrongPasswords.count(request.ip, username)
      countSignInFailure('credentials')
      return refuse((t) => ({ both: t('refusal.sign_in_wrong') }))
    }
    const path = await continueSignIn(request, browser, attempt.signIn, { destination, interaction, passwordAt })
    if (await endSessionsIfRevoked(request.services, attempt.signIn)) {
      countSignInFailure('credentials')
      return refuse((t) => ({ both: t('refusal.sign_in_wrong') }))
    }
    wrongPasswords.forget(request.ip, username)
    return reply.redirect(path, 303)
  })

  function sendWaitingPage(
    request: FastifyRequest,
    reply: FastifyReply,
    waitsFor: 'confirmation' | 'approval',
  ): FastifyReply {
    const needs = { confirmation: waitsFor === 'confirmation', approval: waitsFor === 'approval' }
    const page = waitingPage(textsFor(request, reply), services.config.podName, needs)
    return reply.type('text/html; charset=utf-8').send(page)
  }

  /** Begins the second step or the session. Returns the path that follows. */
  async function continueSignIn(
    request: FastifyRequest,
    browser: Browser,
    { userId, address, needsFactor, isClosing }: SignIn,
    { destination, interaction, passwordAt }: SignInContext,
  ): Promise<string> {
    const next = isClosing ? TO_KEEP_ACCOUNT : destination
    if (needsFactor) return beginStep(browser, { userId, first: { passwordAt } }, next)
    const path = await browser.signIn(
      { address, level: 'password' },
      isClosing ? undefined : interaction,
      next.returnTo,
    )
    const hasNotices = !interaction && (await mustConfirmNotices(request.services, address))
    return hasNotices ? noticesPath(destination.returnTo) : path
  }

  app.post(OIDC_PATHS.signOut, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    await browser.signOut()
    return reply.redirect('/', 303)
  })
}

function noticesPath(returnTo: string | undefined): string {
  return `/settings/notices${returnTo === undefined ? '' : `?return_to=${encodeURIComponent(returnTo)}`}`
}

/** The path of a page, with the pending request of a client. */
export function withRequest(path: string, uid: string | undefined): string {
  return uid === undefined ? path : `${path}?request=${encodeURIComponent(uid)}`
}
