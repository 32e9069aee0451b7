import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { DELIVERIES, isPreferenceKind, NOTICE_DELIVERY, STAFF_NOTICE_DELIVERY } from '../../domain/mail/mail-kinds.js'
import { changeMailPreferences, findMailPreferences } from '../../domain/mail/mail-settings.js'
import { formText } from '../oidc/form-text.js'
import { checkBox, selectList } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { doButton, redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

const LABELS: Readonly<Record<keyof typeof NOTICE_DELIVERY | keyof typeof STAFF_NOTICE_DELIVERY, string>> = {
  mentioned: 'Somebody mentions me in a post',
  mentioned_in_comment: 'Somebody mentions me in a comment',
  started_sharing: 'Somebody starts sharing with me',
  private_message: 'I get a message',
  comment_on_post: 'Somebody comments on my post',
  also_commented: 'Somebody comments where I have commented',
  liked: 'Somebody likes my post',
  liked_comment: 'Somebody likes my comment',
  reshared: 'Somebody reshares my post',
  contacts_birthday: 'A contact has birthday',
  someone_reported: 'Something is reported (for moderators)',
  sign_up_waiting: 'A sign-up waits (for moderators)',
}

const DELIVERY_WORDS = { immediate: 'at once', daily: 'in the daily summary', never: 'never' } as const

/** Which notices are sent by mail, and when. */
export const mailRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { enabled, digestHour, kinds } = await findMailPreferences(app.pod, request.member.account.userId)
    const isStaff = request.member.account.role !== null
    const shown = Object.keys({ ...NOTICE_DELIVERY, ...(isStaff && STAFF_NOTICE_DELIVERY) }).filter(isPreferenceKind)
    const lists = shown.map((kind) =>
      selectList({
        name: `mail_kinds.${kind}`,
        label: LABELS[kind],
        options: DELIVERIES.map((delivery) => [delivery, DELIVERY_WORDS[delivery]] as const),
        chosen: kinds[kind] ?? 'never',
      }),
    )
    const hours = Array.from({ length: 24 }, (_, hour) => [String(hour), `${hour}:00`] as const)
    return sendSettingsPage(request, reply, {
      title: 'Mail',
      errors,
      content: html`<section class="card">${settingsForm(
        request,
        html`${checkBox({ name: 'mail_enabled', label: 'Send me notices by mail', checked: enabled })}
${selectList({ name: 'digest_hour', label: 'Time of the daily summary', options: hours, chosen: String(digestHour) })}
<h2>What for</h2>
${lists}${doButton('save', 'Save')}`,
      )}</section>`,
    })
  }

  app.get('/settings/mail', route, (request, reply) => show(request, reply))

  app.post('/settings/mail', route, async (request, reply) => {
    const kinds = Object.keys(LABELS).flatMap((kind) => {
      const delivery = formText(request, `mail_kinds.${kind}`)
      return delivery === undefined ? [] : [[kind, delivery] as const]
    })
    const errors = await changeOrErrors({ digest_hour_invalid: 'digest_hour', mail_kind_invalid: undefined }, () =>
      changeMailPreferences(app.pod, request.member.account.userId, {
        enabled: formText(request, 'mail_enabled') !== undefined,
        digestHour: Number(formText(request, 'digest_hour') ?? Number.NaN),
        kinds: Object.fromEntries(kinds),
      }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithNotice(request, reply, 'saved')
  })
}
