import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { findToken } from '../../../domain/accounts/account-tokens.js'
import { ACCOUNT_LIMITS } from '../../../domain/accounts/limits.js'
import { requestPasswordReset, resetPasswordByToken } from '../../../domain/accounts/passwords/password-reset.js'
import { Refusal } from '../../../domain/refusals.js'
import { formText } from '../../forms/form-text.js'
import { openRateLimit } from '../../limits/rate-limit.js'
import { linkPage, newPasswordPage, requestResetPage } from '../../pages/accounts/link-pages.js'
import { type FormError, formPolicy } from '../../pages/forms.js'
import { translateMarkup } from '../../pages/language/message-markup.js'
import type { PageTexts } from '../../pages/language/page-texts.js'
import { refusalText } from '../../pages/language/refusal-text.js'
import { textsFor } from '../../pages/language/request-language.js'
import { html } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'
import { getBrowser } from '../browser.js'
import { OIDC_LIMITS } from '../limits.js'
import { OIDC_PATHS } from '../paths.js'

const HOUR_SECONDS = 3_600

/** The pages that request a link to reset a password, and that set the new password. */
export const passwordResetRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { podName } = services.config
  const config = { public: true } as const
  const schema = { hide: true }
  const limitAddress = openRateLimit({
    limit: 'password_resets',
    times: ACCOUNT_LIMITS.resetsOfAddress,
    perSeconds: HOUR_SECONDS,
    sources: OIDC_LIMITS.sources,
    now: () => services.now(),
  })

  const limitNewPasswords = openRateLimit({
    limit: 'password_resets',
    times: ACCOUNT_LIMITS.resetsOfAddress,
    perSeconds: HOUR_SECONDS,
    sources: OIDC_LIMITS.sources,
    now: () => services.now(),
  })

  /** False: the address has requested too many. The response is the same. */
  function isWithinLimit(ip: string): boolean {
    try {
      limitAddress(ip)
      return true
    } catch (error) {
      if (error instanceof RequestFault) return false
      throw error
    }
  }

  const send = (reply: FastifyReply, text: string) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
      .send(text)

  // Without a mail server there is no such page.
  if (services.config.mail !== undefined) {
    app.get(OIDC_PATHS.newPassword, { config, schema }, async (request, reply) => {
      const t = textsFor(request, reply)
      const browser = await getBrowser(app, request, reply)
      return send(
        reply,
        requestResetPage({ t, podName, action: OIDC_PATHS.newPassword, formToken: browser.formToken() }),
      )
    })

    app.post(OIDC_PATHS.newPassword, { config, schema }, async (request, reply) => {
      const browser = await getBrowser(app, request, reply)
      browser.checkForm(formText(request, 'form'))
      if (isWithinLimit(request.ip)) await requestPasswordReset(request.services, formText(request, 'username') ?? '')
      const t = textsFor(request, reply)
      const content = html`<p role="status">${t('link.reset_sent_text')}</p>`
      return send(reply, linkPage({ t, podName, title: t('link.reset_sent'), content }))
    })
  }

  function showExpired(t: PageTexts, reply: FastifyReply) {
    const content = html`<p>${t('link.expired_why')}</p>`
    return send(reply.code(422), linkPage({ t, podName, title: t('link.expired'), content }))
  }

  async function show(
    t: PageTexts,
    reply: FastifyReply,
    data: { readonly token: string; readonly formToken: string; readonly errors: readonly FormError[] },
  ) {
    if ((await findToken(services.db, 'password_reset', data.token)) === undefined) return showExpired(t, reply)
    if (data.errors.length > 0) reply.code(422)
    return send(reply, newPasswordPage({ t, podName, action: OIDC_PATHS.editPassword, ...data }))
  }

  app.get(OIDC_PATHS.editPassword, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const t = textsFor(request, reply)
    return show(t, reply, { token: queryText(request, 'token') ?? '', formToken: browser.formToken(), errors: [] })
  })

  app.post(OIDC_PATHS.editPassword, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const token = formText(request, 'token') ?? queryText(request, 'token') ?? ''
    const t = textsFor(request, reply)
    const tokens = { token, formToken: browser.formToken() }
    const password = formText(request, 'password') ?? ''
    if (password !== (formText(request, 'password_again') ?? '')) {
      const errors = [{ field: 'password_again', message: t('refusal.passwords_differ') }]
      return show(t, reply, { ...tokens, errors })
    }
    limitNewPasswords(request.ip)
    try {
      await resetPasswordByToken(request.services, token, password)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason === 'token_not_valid') return showExpired(t, reply)
      return show(t, reply, { ...tokens, errors: [{ field: 'password', message: refusalText(t, error) }] })
    }
    await browser.signOut()
    const content = html`<p role="status">${translateMarkup(t, 'link.password_changed_text', { link: OIDC_PATHS.signIn })}</p>`
    return send(reply, linkPage({ t, podName, title: t('link.password_changed'), content }))
  })
}
