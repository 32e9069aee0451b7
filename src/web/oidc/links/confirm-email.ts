import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { confirmEmail, undoEmailChange } from '../../../domain/accounts/change-email.js'
import { type ConfirmedSignUp, confirmSignUp } from '../../../domain/accounts/sign-ups/open-sign-up.js'
import { Refusal } from '../../../domain/refusals.js'
import { buttonPage, linkPage } from '../../pages/accounts/link-pages.js'
import { formPolicy } from '../../pages/forms.js'
import { html, type MarkupValue } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { type Browser, browserOf } from '../browser.js'
import { formText } from '../form-text.js'
import { OIDC_PATHS } from '../paths.js'

/** The pages of the links that confirm a mailbox, or undo the change of one. */
export const confirmEmailRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const { podName } = pod.config
  const config = { public: true } as const
  const schema = { hide: true }

  const send = (reply: FastifyReply, text: string) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ leadsToClient: false }))
      .send(text)

  const done = (reply: FastifyReply, title: string, content: MarkupValue) =>
    send(reply, linkPage({ podName, title, content: html`<p role="status">${content}</p>` }))

  const expired = (reply: FastifyReply) =>
    done(
      reply.code(422),
      'This link is not valid any more',
      'It was used, has expired, or was replaced by a newer one.',
    )

  /** False: the link is not valid any more. */
  async function isDone(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act()
      return true
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'token_not_valid') return false
      throw error
    }
  }

  /** Opens the account. In the browser in which an application waits for the sign-up, its request continues. */
  async function finishSignUp(reply: FastifyReply, browser: Browser, token: string) {
    let confirmed: ConfirmedSignUp | undefined
    if (!(await isDone(async () => (confirmed = await confirmSignUp(pod, token))))) return expired(reply)
    if (confirmed?.account === undefined) {
      return done(reply, 'Your e-mail address is confirmed', 'A moderator of this pod decides about your sign-up.')
    }
    const { account, requestUid } = confirmed
    const interaction = requestUid === null ? undefined : await browser.request(requestUid).catch(() => undefined)
    if (interaction !== undefined) {
      return reply.redirect(await browser.signIn({ address: account.address, level: 'password' }, interaction), 303)
    }
    return done(reply, 'Your account is open', html`<a href="${OIDC_PATHS.signIn}">Sign in</a>`)
  }

  app.get(OIDC_PATHS.confirmEmail, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    const facts = { podName, action: OIDC_PATHS.confirmEmail, formToken: browser.formToken() }
    const text = 'Press the button to confirm that this mailbox is yours.'
    const words = { title: 'Confirm your e-mail address', text, button: 'Confirm the address' }
    return send(reply, buttonPage({ ...facts, ...words, token: queryText(request, 'token') ?? '' }))
  })

  app.post(OIDC_PATHS.confirmEmail, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const token = formText(request, 'token') ?? ''
    if (await isDone(() => confirmEmail(pod, token))) {
      return done(reply, 'Your e-mail address is confirmed', html`<a href="/settings/email">E-mail settings</a>`)
    }
    return finishSignUp(reply, browser, token)
  })

  app.get(OIDC_PATHS.undoEmail, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    const facts = { podName, action: OIDC_PATHS.undoEmail, formToken: browser.formToken() }
    const text = 'This address becomes the one of your account again, all sessions end, and you set a new password.'
    const words = { title: 'Undo the change of your e-mail address', text, button: 'Undo the change' }
    return send(reply, buttonPage({ ...facts, ...words, token: queryText(request, 'token') ?? '' }))
  })

  app.post(OIDC_PATHS.undoEmail, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    if (!(await isDone(() => undoEmailChange(pod, formText(request, 'token') ?? '')))) return expired(reply)
    const text = 'Look into your mailbox: a mail has the link to set a new password.'
    return done(reply, 'The address is restored', text)
  })
}
