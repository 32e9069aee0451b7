import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { getEmail, requestEmailChange } from '../../domain/accounts/change-email.js'
import { formText } from '../forms/form-text.js'
import { textLine } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html } from '../pages/markup.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

/** The e-mail address of the account, and its change. */
export const emailRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'proof' }, schema: { hide: true } } as const
  const hasMail = app.services.config.mail !== undefined

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    const { email, confirmed, unconfirmedEmail } = await getEmail(request.services, request.signedIn.account.username)
    return sendSettingsPage(request, reply, {
      title: t('settings.email'),
      errors,
      content: html`<section class="card">
<p>${email !== null && confirmed ? translateMarkup(t, 'email.current', { email }) : t('email.none')}</p>
${unconfirmedEmail !== null && html`<p>${translateMarkup(t, 'email.unconfirmed', { email: unconfirmedEmail })}</p>\n`}${settingsForm(
  request,
  html`${textLine({
    name: 'email',
    label: t('email.new'),
    value: formText(request, 'email') ?? '',
    autocomplete: 'email',
    hint: hasMail ? t('email.hint') : t('email.hint_without_mail'),
    error: errors[0]?.message,
  })}${submitButton('save', t('email.change'))}`,
)}</section>`,
    })
  }

  app.get('/settings/email', route, (request, reply) => show(request, reply))

  app.post('/settings/email', route, async (request, reply) => {
    const errors = await collectFieldErrors(request.signedIn.t, { email_invalid: 'email' }, () =>
      requestEmailChange(request.services, request.signedIn.account.userId, formText(request, 'email') ?? ''),
    )
    return errors.length > 0
      ? show(request, reply, errors)
      : redirectWithFlash(request, reply, hasMail ? 'email' : 'email_without_mail')
  })
}
