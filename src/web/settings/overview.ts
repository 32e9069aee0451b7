import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { LANGUAGE_NAMES, LANGUAGES } from '../../domain/accounts/languages.js'
import { changeSettings, findSettings } from '../../domain/accounts/settings.js'
import { formText } from '../oidc/form-text.js'
import { selectList } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { doButton, redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

/** Language and time zone, and what the account is. */
export const overviewRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { account } = request.member
    const settings = await findSettings(app.pod, account.userId)
    const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
    return sendSettingsPage(request, reply, {
      title: 'Settings',
      errors,
      content: html`<section class="card"><h2>Your account</h2>
<p>Your address on the network is <b><bdi>${account.address}</bdi></b>. <a href="/u/${account.username}">Your public page</a> shows what others see.</p></section>
<section class="card"><h2>Language and time</h2>
${settingsForm(
  request,
  html`${selectList({
    name: 'language',
    label: 'Language of this site and of mails',
    options: LANGUAGES.map((language) => [language, LANGUAGE_NAMES[language]] as const),
    chosen: formText(request, 'language') ?? settings.language,
    error: errorOf('language'),
  })}${selectList({
    name: 'time_zone',
    label: 'Time zone',
    options: ['UTC', ...Intl.supportedValuesOf('timeZone').filter((zone) => zone !== 'UTC')].map((zone) => [
      zone,
      zone,
    ]),
    chosen: formText(request, 'time_zone') ?? settings.timeZone,
    error: errorOf('time_zone'),
  })}${doButton('save', 'Save')}`,
)}</section>`,
    })
  }

  app.get('/settings', route, (request, reply) => show(request, reply))

  app.post('/settings', route, async (request, reply) => {
    const errors = await changeOrErrors({ language_invalid: 'language', time_zone_invalid: 'time_zone' }, () =>
      changeSettings(app.pod, request.member.account.userId, {
        language: formText(request, 'language'),
        timeZone: formText(request, 'time_zone'),
      }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithNotice(request, reply, 'saved')
  })
}
