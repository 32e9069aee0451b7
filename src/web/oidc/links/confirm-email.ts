import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { confirmEmail, undoEmailChange } from '../../../domain/accounts/change-email.js'
import { type ConfirmedSignUp, confirmSignUp } from '../../../domain/accounts/sign-ups/open-sign-up.js'
import { Refusal } from '../../../domain/refusals.js'
import { formText } from '../../forms/form-text.js'
import { buttonPage, linkPage } from '../../pages/accounts/link-pages.js'
import { formPolicy } from '../../pages/forms.js'
import type { PageTexts } from '../../pages/language/page-texts.js'
import { textsFor } from '../../pages/language/request-language.js'
import { html, type MarkupValue } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { type Browser, getBrowser } from '../browser.js'
import { OIDC_PATHS } from '../paths.js'

/** The pages of the links that confirm a mailbox, or undo the change of one. */
export const confirmEmailRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { podName } = services.config
  const config = { public: true } as const
  const schema = { hide: true }

  const send = (reply: FastifyReply, text: string) =>
    reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
      .send(text)

  const sendResult = (t: PageTexts, reply: FastifyReply, title: string, content: MarkupValue) =>
    send(reply, linkPage({ t, podName, title, content: html`<p role="status">${content}</p>` }))

  const sendExpired = (t: PageTexts, reply: FastifyReply) =>
    sendResult(t, reply.code(422), t('link.expired'), t('link.expired_why'))

  /** False: the link is no longer valid. */
  async function actIfValid(act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act()
      return true
    } catch (error) {
      if (error instanceof Refusal && error.reason === 'token_not_valid') return false
      throw error
    }
  }

  /** Opens the account. In the browser in which an application waits for the sign-up, its request continues. */
  async function finishSignUp(t: PageTexts, reply: FastifyReply, browser: Browser, token: string) {
    let confirmedSignUp: ConfirmedSignUp | undefined
    if (!(await actIfValid(async () => (confirmedSignUp = await confirmSignUp(reply.request.services, token)))))
      return sendExpired(t, reply)
    if (confirmedSignUp?.account === undefined) {
      return sendResult(t, reply, t('link.email_confirmed'), t('link.moderator_decides'))
    }
    const { account, requestUid } = confirmedSignUp
    const interaction =
      requestUid === null ? undefined : await browser.getInteraction(requestUid).catch(() => undefined)
    if (interaction !== undefined) {
      return reply.redirect(await browser.signIn({ address: account.address, level: 'password' }, interaction), 303)
    }
    return sendResult(t, reply, t('link.account_open'), html`<a href="${OIDC_PATHS.signIn}">${t('sign_in.title')}</a>`)
  }

  app.get(OIDC_PATHS.confirmEmail, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const t = textsFor(request, reply)
    const form = { t, podName, action: OIDC_PATHS.confirmEmail, formToken: browser.formToken() }
    const texts = { title: t('link.confirm_title'), text: t('link.confirm_text'), button: t('link.confirm_button') }
    return send(reply, buttonPage({ ...form, ...texts, token: queryText(request, 'token') ?? '' }))
  })

  app.post(OIDC_PATHS.confirmEmail, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const token = formText(request, 'token') ?? ''
    const t = textsFor(request, reply)
    if (await actIfValid(() => confirmEmail(request.services, token))) {
      return sendResult(
        t,
        reply,
        t('link.email_confirmed'),
        html`<a href="/settings/email">${t('link.email_settings')}</a>`,
      )
    }
    return finishSignUp(t, reply, browser, token)
  })

  app.get(OIDC_PATHS.undoEmail, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const t = textsFor(request, reply)
    const form = { t, podName, action: OIDC_PATHS.undoEmail, formToken: browser.formToken() }
    const texts = { title: t('link.undo_title'), text: t('link.undo_text'), button: t('link.undo_button') }
    return send(reply, buttonPage({ ...form, ...texts, token: queryText(request, 'token') ?? '' }))
  })

  app.post(OIDC_PATHS.undoEmail, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const t = textsFor(request, reply)
    if (!(await actIfValid(() => undoEmailChange(request.services, formText(request, 'token') ?? ''))))
      return sendExpired(t, reply)
    return sendResult(t, reply, t('link.restored'), t('link.restored_text'))
  })
}
