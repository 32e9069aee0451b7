import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findActiveUser } from '../../domain/accounts/authorizations.js'
import { findClient } from '../../domain/accounts/clients.js'
import { findRelyingParty } from '../../domain/accounts/factors/relying-party.js'
import { findFactors, hasFactor } from '../../domain/accounts/factors/second-factor.js'
import { beginSecondStep, type FirstFactor } from '../../domain/accounts/factors/second-step.js'
import { endSessionsIfRevoked, normaliseUsername, type SignIn, signIn } from '../../domain/accounts/sign-in.js'
import { findPendingState, repeatConfirmation } from '../../domain/accounts/sign-ups/pending-state.js'
import { mustConfirmNotices } from '../../domain/moderation/notices/user-notices.js'
import { limitAddresses } from '../limits/address-limit.js'
import { countRateLimited, countSignInFailure } from '../limits/rejection-metrics.js'
import { operatorContact } from '../pages/accounts/operator-contact.js'
import { type SignInErrors, signInPage } from '../pages/accounts/sign-in-page.js'
import { waitingPage } from '../pages/accounts/sign-up-page.js'
import { formPolicy } from '../pages/forms.js'
import type { PageTexts } from '../pages/language/page-texts.js'
import { textsFor } from '../pages/language/request-language.js'
import { queryText } from '../schemas/query-text.js'
import { type Browser, getBrowser, readUiLocales } from './browser.js'
import { formText } from './form-text.js'
import { OIDC_PATHS } from './paths.js'
import { asksOnlyForFactor } from './policy.js'
import { readReturnPath } from './return-path.js'
import { type Destination, TO_KEEP_ACCOUNT, withDestination } from './sign-in-destination.js'
import { openWrongPasswords } from './wrong-passwords.js'

interface BegunStep {
  readonly userId: number
  readonly first: FirstFactor
}

interface Attempt {
  readonly username: string
  readonly errors: (t: PageTexts) => SignInErrors
}

/** After the sign-in the request of the client continues; without one unread notices of the moderators, or the start page, follow. */
export const signInRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const config = { public: true } as const
  const schema = { hide: true }
  // Successful sign-ins are not limited.
  const limited = limitAddresses(pod, 'signIns', (status) => status !== 303)
  const hasPasskeys = findRelyingParty(pod) !== undefined
  const wrongPasswords = openWrongPasswords(() => pod.now())

  async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    browser: Browser,
    { uid, returnTo, attempt }: Destination & { readonly attempt?: Attempt },
  ) {
    const interaction = uid === undefined ? undefined : await browser.request(uid)
    const params = interaction?.params ?? {}
    const client = interaction && (await findClient(pod, String(params['client_id'])))
    const hint = normaliseUsername(pod, String(params['login_hint'] ?? ''))
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    const { podName, host } = pod.config
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
          resetPassword: pod.config.mail === undefined ? undefined : OIDC_PATHS.newPassword,
          passkey: hasPasskeys ? withDestination(OIDC_PATHS.passkey, { uid, returnTo }) : undefined,
          signUp: pod.config.registrations === 'open' ? withRequest(OIDC_PATHS.signUp, uid) : undefined,
          contact: operatorContact(t, pod.config),
        }),
      )
  }

  app.get(OIDC_PATHS.signIn, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const uid = queryText(request, 'request')
    const returnTo = readReturnPath(queryText(request, 'return_to'))
    if (uid === undefined && (await browser.address())) {
      return reply.redirect(returnTo ?? '/', 303)
    }
    const missing = uid === undefined ? undefined : await findMissingFactor(browser, uid)
    if (missing !== undefined) return reply.redirect(await beginStep(browser, missing, { uid, returnTo }), 303)
    return show(request, reply, browser, { uid, returnTo })
  })

  /** The signed-in user from whom a client asks for nothing but the second factor. */
  async function findMissingFactor(browser: Browser, uid: string): Promise<BegunStep | undefined> {
    if (!asksOnlyForFactor(await browser.request(uid))) return undefined
    const session = await browser.signedIn()
    const user = session && (await findActiveUser(pod, session.address))
    if (!user || !hasFactor(await findFactors(pod.db, user.id))) return undefined
    return { userId: user.id, first: { sessionUid: session.uid } }
  }

  /** Returns the path of the second step. */
  async function beginStep(browser: Browser, step: BegunStep, { uid, returnTo }: Destination): Promise<string> {
    browser.keepSecondStep(await beginSecondStep(pod, { ...step, requestUid: uid, returnTo }))
    return withRequest(OIDC_PATHS.secondStep, uid)
  }

  app.post(OIDC_PATHS.signIn, { config, schema, ...limited }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const uid = formText(request, 'request')
    const returnTo = readReturnPath(formText(request, 'return_to'))
    const destination = { uid, returnTo }
    const username = normaliseUsername(pod, formText(request, 'username') ?? '')
    const password = formText(request, 'password')
    if (username === '' || password === undefined) {
      const errors = (t: PageTexts) => ({
        username: username === '' ? t('refusal.own_username_missing') : undefined,
        password: password === undefined ? t('refusal.own_password_missing') : undefined,
      })
      return show(request, reply.code(422), browser, { ...destination, attempt: { username, errors } })
    }
    const wait = wrongPasswords.waitFor(request.ip, username)
    if (wait !== undefined) {
      countRateLimited('wrong_passwords')
      countSignInFailure('throttled')
      // The page keeps the form, so that the request of the client is not lost.
      const errors = (t: PageTexts) => ({ notNow: wait.text?.(t) ?? wait.message })
      reply.code(wait.status).headers(wait.headers)
      return show(request, reply, browser, { ...destination, attempt: { username, errors } })
    }
    const interaction = uid === undefined ? undefined : await browser.request(uid)
    const passwordAt = pod.now()
    const continueAfterPassword = ({ userId, address, needsFactor, isClosing }: SignIn) => {
      const next = isClosing ? TO_KEEP_ACCOUNT : destination
      if (needsFactor) return beginStep(browser, { userId, first: { passwordAt } }, next)
      return browser.signIn({ address, level: 'password' }, isClosing ? undefined : interaction, next.returnTo)
    }

    const signedIn = await signIn(pod, username, password)
    const target = signedIn && (await continueAfterPassword(signedIn))
    if (signedIn === undefined || target === undefined || (await endSessionsIfRevoked(pod, signedIn))) {
      const pending = target === undefined ? await findPendingState(pod, username, password) : undefined
      if (pending !== undefined) {
        const { waitsFor } = pending
        if (waitsFor === 'confirmation') await repeatConfirmation(pod, pending)
        const needs = { confirmation: waitsFor === 'confirmation', approval: waitsFor === 'approval' }
        return reply
          .type('text/html; charset=utf-8')
          .send(waitingPage(textsFor(request, reply), pod.config.podName, needs))
      }
      wrongPasswords.count(request.ip, username)
      countSignInFailure('credentials')
      const errors = (t: PageTexts) => ({ both: t('refusal.sign_in_wrong') })
      return show(request, reply.code(422), browser, { ...destination, attempt: { username, errors } })
    }
    wrongPasswords.forget(request.ip, username)
    const hasNotices = !signedIn.needsFactor && !interaction && (await mustConfirmNotices(pod, signedIn.address))
    return reply.redirect(hasNotices ? noticesPath(returnTo) : target, 303)
  })

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
