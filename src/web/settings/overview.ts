import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { changeSettings, getSettings } from '../../domain/accounts/settings.js'
import { languageName } from '../../languages/languages.js'
import { formText } from '../forms/form-text.js'
import { selectList } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html } from '../pages/markup.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

/** Language and time zone, and what the account is. */
export const overviewRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { account, t } = request.signedIn
    const settings = await getSettings(request.services, account.userId)
    const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
    return sendSettingsPage(request, reply, {
      title: t('settings.title'),
      errors,
      content: html`<section class="card"><h2>${t('overview.account')}</h2>
<p>${translateMarkup(t, 'overview.address', { address: account.address, link: `/u/${account.username}` })}</p></section>
<section class="card"><h2>${t('overview.language_and_time')}</h2>
${settingsForm(
  request,
  html`${selectList({
    name: 'language',
    label: t('overview.language'),
    options: app.services.locales.languages.map((language) => [language, languageName(language)] as const),
    chosen: formText(request, 'language') ?? settings.language,
    error: errorOf('language'),
  })}${selectList({
    name: 'time_zone',
    label: t('overview.time_zone'),
    options: ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')].map((zone) => [
      zone,
      zone,
    ]),
    chosen: formText(request, 'time_zone') ?? settings.timeZone,
    error: errorOf('time_zone'),
  })}${submitButton('save', t('common.save'))}`,
)}</section>`,
    })
  }

  app.get('/settings', route, (request, reply) => show(request, reply))

  app.post('/settings', route, async (request, reply) => {
    const errors = await collectFieldErrors(
      request.signedIn.t,
      { language_invalid: 'language', time_zone_invalid: 'time_zone' },
      () =>
        changeSettings(request.services, request.signedIn.account.userId, {
          language: formText(request, 'language'),
          timeZone: formText(request, 'time_zone'),
        }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'saved')
  })
}
