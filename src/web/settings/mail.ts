import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { changeMailPreferences, getMailPreferences } from '../../domain/mail/mail-settings.js'
import {
  DELIVERIES,
  isPreferenceKind,
  NOTIFICATION_MAIL_DELIVERY,
  PREFERENCE_DEFAULTS,
  STAFF_MAIL_DELIVERY,
} from '../../persistence/mail/mail-kinds.js'
import { formText } from '../forms/form-text.js'
import { checkBox, selectList } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { hourText } from '../pages/time.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

/** Which notices are sent by mail, and when. */
export const mailRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    const { enabled, digestHour, kinds } = await getMailPreferences(request.services, request.signedIn.account.userId)
    const isStaff = request.signedIn.account.role !== null
    const shownKinds = Object.keys({ ...NOTIFICATION_MAIL_DELIVERY, ...(isStaff && STAFF_MAIL_DELIVERY) }).filter(
      isPreferenceKind,
    )
    const lists = shownKinds.map((kind) =>
      selectList({
        name: `mail_kinds.${kind}`,
        label: t(`mail_kind.${kind}`),
        options: DELIVERIES.map((delivery) => [delivery, t(`mail_settings.${delivery}`)] as const),
        chosen: kinds[kind] ?? 'never',
      }),
    )
    const hours = Array.from({ length: 24 }, (_, hour) => [String(hour), hourText(t, hour)] as const)
    return sendSettingsPage(request, reply, {
      title: t('settings.mail'),
      errors,
      content: html`<section class="card">${settingsForm(
        request,
        html`${checkBox({ name: 'mail_enabled', label: t('mail_settings.enabled'), checked: enabled })}
${selectList({ name: 'digest_hour', label: t('mail_settings.hour'), options: hours, chosen: String(digestHour) })}
<h2>${t('mail_settings.kinds')}</h2>
${lists}${submitButton('save', t('common.save'))}`,
      )}</section>`,
    })
  }

  app.get('/settings/mail', route, (request, reply) => show(request, reply))

  app.post('/settings/mail', route, async (request, reply) => {
    const kinds = Object.keys(PREFERENCE_DEFAULTS).flatMap((kind) => {
      const delivery = formText(request, `mail_kinds.${kind}`)
      return delivery === undefined ? [] : [[kind, delivery] as const]
    })
    const errors = await collectFieldErrors(
      request.signedIn.t,
      { digest_hour_invalid: 'digest_hour', mail_kind_invalid: undefined },
      () =>
        changeMailPreferences(request.services, request.signedIn.account.userId, {
          enabled: formText(request, 'mail_enabled') !== undefined,
          digestHour: Number(formText(request, 'digest_hour') ?? Number.NaN),
          kinds: Object.fromEntries(kinds),
        }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'saved')
  })
}
