import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { normaliseUsername } from '../../domain/accounts/sign-in.js'
import {
  beginSignUp,
  findSignUpFormRefusals,
  findSignUpPageRefusal,
  needsApproval,
  type SignUpResult,
} from '../../domain/accounts/sign-ups/begin-sign-up.js'
import { Refusal } from '../../domain/refusals.js'
import { formText } from '../forms/form-text.js'
import { isFormTimeValid, signFormTime } from '../forms/form-time.js'
import { limitAddresses } from '../limits/address-limit.js'
import {
  noSignUpPage,
  type SignUpError,
  type SignUpField,
  signUpPage,
  waitingPage,
} from '../pages/accounts/sign-up-page.js'
import { formPolicy } from '../pages/forms.js'
import type { PageTexts } from '../pages/language/page-texts.js'
import { refusalText } from '../pages/language/refusal-text.js'
import { setLanguageCookie, textsFor } from '../pages/language/request-language.js'
import { queryText } from '../schemas/query-text.js'
import { type Browser, getBrowser, type Interaction, readUiLocales } from './browser.js'
import { OIDC_PATHS } from './paths.js'
import { withRequest } from './sign-in.js'

interface Visit {
  readonly request: string | undefined
  readonly invitation: string | undefined
  readonly username?: string
  readonly email?: string | undefined
  readonly reason?: string | undefined
  readonly language?: string | undefined
  readonly terms?: string | undefined
  readonly errors?: readonly SignUpError[]
}

/** Creates accounts: for everyone, with an invitation only, or never, depending on REGISTRATIONS. */
export const signUpRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true } as const
  const schema = { hide: true }
  const limitSignIns = limitAddresses(services, 'signIns')

  async function show(request: FastifyRequest, reply: FastifyReply, browser: Browser, visit: Visit) {
    const { podName, host } = services.config
    const interaction = visit.request === undefined ? undefined : await browser.getInteraction(visit.request)
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    reply.type('text/html; charset=utf-8')
    const signUpRefusal = await findSignUpPageRefusal(request.services, { ...visit, ip: request.ip })
    if (signUpRefusal?.reason === 'sign_up_full')
      reply.code(503).header('retry-after', String(signUpRefusal.details['retryAfter']))
    else if (signUpRefusal) reply.code(signUpRefusal.reason === 'invitation_unusable' ? 404 : 403)
    if (signUpRefusal) return reply.send(noSignUpPage(t, podName, refusalText(t, signUpRefusal)))
    return reply.header('content-security-policy', formPolicy({ mayLeadToClient: visit.request !== undefined })).send(
      signUpPage({
        t,
        languages: services.locales.languages,
        language: visit.language ?? t.language,
        podName,
        host,
        action: OIDC_PATHS.signUp,
        signIn: withRequest(OIDC_PATHS.signIn, visit.request),
        formToken: browser.formToken(),
        username: visit.username ?? '',
        formTime: signFormTime(request.services, services.now()),
        email: services.config.mail === undefined ? undefined : (visit.email ?? ''),
        reason: (await needsApproval(request.services, visit.invitation)) ? (visit.reason ?? '') : undefined,
        terms: services.terms && {
          path: OIDC_PATHS.terms,
          version: services.terms.version,
          isAccepted: visit.terms === services.terms.version,
        },
        request: visit.request,
        invitation: visit.invitation,
        errors: visit.errors ?? [],
      }),
    )
  }

  /** All errors at once, in the order of the fields. */
  async function findErrors(
    t: PageTexts,
    form: Parameters<typeof findSignUpFormRefusals>[1] & { readonly again: string; readonly language: string },
  ) {
    const { username, password, again, language } = form
    const refusals = (await findSignUpFormRefusals(services, form)).map((refusal) => errorOf(t, refusal))
    const refusalOf = (name: SignUpField) => refusals.find(({ field }) => field === name)
    const error = (field: SignUpField, message: string) => ({ field, message })
    const errors: readonly (SignUpError | undefined)[] = [
      username === '' ? error('username', t('refusal.username_missing')) : refusalOf('username'),
      refusalOf('email'),
      password === '' ? error('password', t('refusal.password_missing')) : refusalOf('password'),
      password === again ? undefined : error('password_again', t('refusal.passwords_differ')),
      services.locales.languages.includes(language) ? undefined : error('language', t('refusal.language_invalid')),
      refusalOf('reason'),
      refusalOf('terms'),
    ]
    return errors.filter((each) => each !== undefined)
  }

  /** Programs fill in the hidden field, or send the form at once. */
  function isByProgram(request: FastifyRequest): boolean {
    return (
      formText(request, 'website') !== undefined || !isFormTimeValid(request.services, formText(request, 'form_time'))
    )
  }

  app.get(OIDC_PATHS.signUp, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    return show(request, reply, browser, {
      request: queryText(request, 'request'),
      invitation: queryText(request, 'invitation'),
    })
  })

  app.post(OIDC_PATHS.signUp, { config, schema, ...limitSignIns }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const visit = { request: formText(request, 'request'), invitation: formText(request, 'invitation') }
    const interaction = visit.request === undefined ? undefined : await browser.getInteraction(visit.request)
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    const username = normaliseUsername(request.services, formText(request, 'username') ?? '')
    const password = formText(request, 'password') ?? ''
    const texts = { email: formText(request, 'email'), reason: formText(request, 'reason')?.trim() }
    const again = formText(request, 'password_again') ?? ''
    const language = formText(request, 'language') ?? t.language
    const terms = formText(request, 'terms') && (formText(request, 'terms_version') ?? services.terms?.version)
    const errors = isByProgram(request)
      ? [{ field: undefined, message: t('refusal.too_early') }]
      : await findErrors(t, {
          username,
          password,
          again,
          language,
          terms,
          ...texts,
          ip: request.ip,
          invitation: visit.invitation,
        })
    const formValues = { ...visit, username, language, terms, ...texts }
    if (errors.length > 0) return show(request, reply.code(422), browser, { ...formValues, errors })
    try {
      const signUp = await beginSignUp(request.services, {
        username,
        password,
        ...texts,
        language,
        invitation: visit.invitation,
        requestUid: visit.request,
        ip: request.ip,
        terms,
      })
      setLanguageCookie(reply, language)
      return await finish(request, reply, browser, { signUp, interaction, language })
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason === 'sign_up_full') {
        reply.code(503).header('retry-after', String(error.details['retryAfter']))
        const html = noSignUpPage(t, services.config.podName, refusalText(t, error))
        return reply.type('text/html; charset=utf-8').send(html)
      }
      return show(request, reply.code(422), browser, { ...formValues, errors: [errorOf(t, error)] })
    }
  })

  /** Signs the person in, or reports the missing step in the chosen language. */
  async function finish(request: FastifyRequest, reply: FastifyReply, browser: Browser, begun: BegunSignUp) {
    const { signUp, interaction, language } = begun
    if (signUp.needs !== undefined) {
      const t = textsFor(request, reply, { uiLocales: language })
      return reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
        .send(waitingPage(t, services.config.podName, signUp.needs))
    }
    const target = await browser.signIn({ address: signUp.account.address, level: 'password' }, interaction)
    return reply.redirect(interaction === undefined ? `${target}?welcome=1` : target, 303)
  }
}

interface BegunSignUp {
  readonly signUp: SignUpResult
  readonly interaction: Interaction | undefined
  readonly language: string
}

const FIELDS: Readonly<Record<string, SignUpField>> = {
  username_invalid: 'username',
  username_reserved: 'username',
  username_taken: 'username',
  password_invalid: 'password',
  email_invalid: 'email',
  email_refused: 'email',
  reason_invalid: 'reason',
  terms_missing: 'terms',
  terms_changed: 'terms',
}

function errorOf(t: PageTexts, refusal: Refusal): SignUpError {
  return { field: FIELDS[refusal.reason], message: refusalText(t, refusal) }
}
