import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { changeMailPreferences, findMailPreferences } from '../../domain/mail/mail-settings.js'
import {
  DELIVERIES,
  isPreferenceKind,
  NOTICE_DELIVERY,
  PREFERENCE_DEFAULTS,
  STAFF_NOTICE_DELIVERY,
} from '../../persistence/mail/mail-kinds.js'
import { formText } from '../oidc/form-text.js'
import { checkBox, selectList } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { hourText } from '../pages/time.js'
import { redirectWithNotice, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'
import { collectFieldErrors, type FieldErrors } from './try-change.js'

/** Which notices are sent by mail, and when. */
export const mailRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.member
    const { enabled, digestHour, kinds } = await findMailPreferences(app.pod, request.member.account.userId)
    const isStaff = request.member.account.role !== null
    const shown = Object.keys({ ...NOTICE_DELIVERY, ...(isStaff && STAFF_NOTICE_DELIVERY) }).filter(isPreferenceKind)
    const lists = shown.map((kind) =>
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
      request.member.t,
      { digest_hour_invalid: 'digest_hour', mail_kind_invalid: undefined },
      () =>
        changeMailPreferences(app.pod, request.member.account.userId, {
          enabled: formText(request, 'mail_enabled') !== undefined,
          digestHour: Number(formText(request, 'digest_hour') ?? Number.NaN),
          kinds: Object.fromEntries(kinds),
        }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithNotice(request, reply, 'saved')
  })
}
