import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findEmail, requestEmailChange } from '../../domain/accounts/change-email.js'
import { formText } from '../oidc/form-text.js'
import { textLine } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { doButton, redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

/** The e-mail address of the account, and its change. */
export const emailRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { member: 'proof' }, schema: { hide: true } } as const
  const hasMail = app.pod.config.mail !== undefined

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { email, confirmed, unconfirmedEmail, mailState } = await findEmail(app.pod, request.member.account.username)
    const hint = hasMail
      ? 'A mail to this address has a link that confirms it. Until then the old address stays.'
      : 'This pod sends no mail: the address stays unconfirmed, and is not used.'
    return sendSettingsPage(request, reply, {
      title: 'E-mail address',
      errors,
      content: html`<section class="card">
<p>${email !== null && confirmed ? html`Your address is <b><bdi>${email}</bdi></b>.` : 'You have no confirmed address.'}</p>
${unconfirmedEmail !== null && html`<p>Not confirmed yet: <b><bdi>${unconfirmedEmail}</bdi></b>.</p>\n`}${
  mailState === 'suppressed' &&
  html`<p class="alert" role="alert">Mails to your address come back. Enter an address that works, or this one again, and confirm it.</p>\n`
}${settingsForm(
  request,
  html`${textLine({
    ...{ name: 'email', label: 'New e-mail address', value: formText(request, 'email') ?? '', autocomplete: 'email' },
    hint,
    error: errors[0]?.message,
  })}${doButton('save', 'Change the address')}`,
)}</section>`,
    })
  }

  app.get('/settings/email', route, (request, reply) => show(request, reply))

  app.post('/settings/email', route, async (request, reply) => {
    const errors = await changeOrErrors({ email_invalid: 'email' }, () =>
      requestEmailChange(app.pod, request.member.account.userId, formText(request, 'email') ?? ''),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithNotice(request, reply, 'email')
  })
}
