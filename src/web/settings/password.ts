import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { changePassword } from '../../domain/accounts/passwords/change-password.js'
import { formText } from '../forms/form-text.js'
import { checkBox } from '../pages/controls.js'
import { field } from '../pages/forms.js'
import { html, trustMarkup } from '../pages/markup.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

/** A new password. The step-up of this page needs the old one. */
export const passwordRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'proof' }, schema: { hide: true } } as const

  function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    const errorOf = (name: string) => errors.find((error) => error.field === name)?.message
    return sendSettingsPage(request, reply, {
      title: t('settings.password'),
      errors,
      content: html`<section class="card">
<p class="soft">${t('password.about')}</p>
${settingsForm(
  request,
  html`${trustMarkup(
    field({
      name: 'password',
      label: t('link.new_password'),
      type: 'password',
      autocomplete: 'new-password',
      hint: t('password.hint'),
      error: errorOf('password'),
    }),
  )}
${trustMarkup(
  field({
    name: 'password_again',
    label: t('link.new_password_again'),
    type: 'password',
    autocomplete: 'new-password',
    error: errorOf('password_again'),
  }),
)}
${checkBox({
  name: 'end_applications',
  label: t('password.end_applications'),
  checked: formText(request, 'end_applications') !== undefined,
})}${submitButton('save', t('link.new_password_button'))}`,
)}</section>`,
    })
  }

  app.get('/settings/password', route, async (request, reply) => show(request, reply))

  app.post('/settings/password', route, async (request, reply) => {
    const password = formText(request, 'password') ?? ''
    if (password !== (formText(request, 'password_again') ?? '')) {
      return show(request, reply, [
        { field: 'password_again', message: request.signedIn.t('refusal.passwords_differ') },
      ])
    }
    const errors = await collectFieldErrors(request.signedIn.t, { password_invalid: 'password' }, () =>
      changePassword(request.services, request.signedIn.owner, {
        password,
        shouldEndApplications: formText(request, 'end_applications') !== undefined,
      }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'password')
  })
}
