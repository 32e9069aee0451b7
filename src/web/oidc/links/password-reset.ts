import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { findToken } from '../../../domain/accounts/account-tokens.js'
import { ACCOUNT_LIMITS } from '../../../domain/accounts/limits.js'
import { requestPasswordReset, resetPasswordByToken } from '../../../domain/accounts/passwords/password-reset.js'
import { Refusal } from '../../../domain/refusals.js'
import { openRateLimit } from '../../limits/rate-limit.js'
import { linkPage, newPasswordPage, requestResetPage } from '../../pages/accounts/link-pages.js'
import { type FormError, formPolicy } from '../../pages/forms.js'
import { html } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'
import { browserOf } from '../browser.js'
import { formText } from '../form-text.js'
import { OIDC_LIMITS } from '../limits.js'
import { OIDC_PATHS } from '../paths.js'

const HOUR_SECONDS = 3_600

/** Asks for a link to reset a password, and sets the new one. */
export const passwordResetRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const { podName } = pod.config
  const config = { public: true } as const
  const schema = { hide: true }
  const limitAddress = openRateLimit({
    limit: 'password_resets',
    times: ACCOUNT_LIMITS.resetsOfAddress,
    perSeconds: HOUR_SECONDS,
    sources: OIDC_LIMITS.sources,
    now: () => pod.now(),
  })

  const limitNewPasswords = openRateLimit({
    limit: 'password_resets',
    times: ACCOUNT_LIMITS.resetsOfAddress,
    perSeconds: HOUR_SECONDS,
    sources: OIDC_LIMITS.sources,
    now: () => pod.now(),
  })

  /** False: the address has requested too many. Nothing tells it. */
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
      .header('content-security-policy', formPolicy({ leadsToClient: false }))
      .send(text)

  // Without a mail server there is no such page.
  if (pod.config.mail !== undefined) {
    app.get(OIDC_PATHS.newPassword, { config, schema }, async (request, reply) => {
      const browser = await browserOf(app, request, reply)
      return send(reply, requestResetPage({ podName, action: OIDC_PATHS.newPassword, formToken: browser.formToken() }))
    })

    app.post(OIDC_PATHS.newPassword, { config, schema }, async (request, reply) => {
      const browser = await browserOf(app, request, reply)
      browser.checkForm(formText(request, 'form'))
      if (isWithinLimit(request.ip)) await requestPasswordReset(pod, formText(request, 'username') ?? '')
      const text =
        'If there is such an account with a confirmed e-mail address, a mail with a link is on its way to it.'
      return send(
        reply,
        linkPage({ podName, title: 'Look into your mailbox', content: html`<p role="status">${text}</p>` }),
      )
    })
  }

  function showExpired(reply: FastifyReply) {
    const content = html`<p>The link was used, has expired, or was replaced by a newer one.</p>`
    return send(reply.code(422), linkPage({ podName, title: 'This link is not valid any more', content }))
  }

  async function show(
    reply: FastifyReply,
    facts: { readonly token: string; readonly formToken: string; readonly errors: readonly FormError[] },
  ) {
    if ((await findToken(pod.db, 'password_reset', facts.token)) === undefined) return showExpired(reply)
    if (facts.errors.length > 0) reply.code(422)
    return send(reply, newPasswordPage({ podName, action: OIDC_PATHS.editPassword, ...facts }))
  }

  app.get(OIDC_PATHS.editPassword, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    return show(reply, { token: queryText(request, 'token') ?? '', formToken: browser.formToken(), errors: [] })
  })

  app.post(OIDC_PATHS.editPassword, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const token = formText(request, 'token') ?? queryText(request, 'token') ?? ''
    const facts = { token, formToken: browser.formToken() }
    const password = formText(request, 'password') ?? ''
    if (password !== (formText(request, 'password_again') ?? '')) {
      const errors = [{ field: 'password_again', message: 'The two passwords are not the same.' }]
      return show(reply, { ...facts, errors })
    }
    limitNewPasswords(request.ip)
    try {
      await resetPasswordByToken(pod, token, password)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason === 'token_not_valid') return showExpired(reply)
      return show(reply, { ...facts, errors: [{ field: 'password', message: error.message }] })
    }
    await browser.signOut()
    const content = html`<p role="status">Your new password is set. <a href="${OIDC_PATHS.signIn}">Sign in</a></p>`
    return send(reply, linkPage({ podName, title: 'Your password has changed', content }))
  })
}
