import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { cancelOwnClosing, closeOwnAccount } from '../../domain/accounts/closing/own-closing.js'
import { formText } from '../forms/form-text.js'
import { linkPage } from '../pages/accounts/link-pages.js'
import { textLine } from '../pages/controls.js'
import { formPolicy } from '../pages/forms.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { textsFor } from '../pages/language/request-language.js'
import { html, type Markup } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const PATH = '/settings/close'
const KEEP = `${PATH}/keep`
const CLOSING_REFUSALS = { confirmation_needed: 'username', last_admin: undefined, podmin_account: undefined }

/** Closes the own account after a grace period, in which a sign-in leads here and can keep it. */
export const closeRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { whileClosing: true } as const
  const schema = { hide: true }

  function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { closeAt } = request.signedIn.account
    const isClosing = closeAt !== null
    const content = isClosing
      ? keepCard(request, closeAt)
      : closeCard(request, { days: services.config.closeGraceDays, errors })
    return sendSettingsPage(request, reply, { title: request.signedIn.t('settings.close'), errors, content })
  }

  app.get(PATH, { config: { ...config, requires: 'session' }, schema }, async (request, reply) => show(request, reply))

  app.post(PATH, { config: { ...config, requires: 'proof' }, schema }, async (request, reply) => {
    const { account, browser } = request.signedIn
    let closeAt = account.closeAt ?? services.now()
    const errors = await collectFieldErrors(request.signedIn.t, CLOSING_REFUSALS, async () => {
      closeAt = await closeOwnAccount(request.services, account.userId, formText(request, 'username') ?? '')
    })
    if (errors.length > 0) return show(request, reply, errors)
    await browser.signOut()
    const t = textsFor(request, reply, { setting: account.language })
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
      .send(
        linkPage({
          t,
          podName: services.config.podName,
          title: t('close.closing'),
          content: html`<p role="status">${translateMarkup(t, 'close.until', { time: timeHtml(t, closeAt) })}</p>`,
        }),
      )
  })

  app.post(KEEP, { config: { ...config, requires: 'session' }, schema }, async (request, reply) => {
    const errors = await collectFieldErrors(
      request.signedIn.t,
      { user_closed: undefined, closed_by_moderator: undefined },
      () => cancelOwnClosing(request.services, request.signedIn.account.userId),
    )
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect('/settings?flash=kept', 303)
  })
}

function keepCard(request: FastifyRequest, closeAt: Date): Markup {
  const { t } = request.signedIn
  return html`<section class="card"><p>${translateMarkup(t, 'close.kept_until', { time: timeHtml(t, closeAt) })}</p>
<p>${t('close.keep_about')}</p>
${settingsForm(request, submitButton('keep', t('close.keep')), KEEP)}</section>`
}

function closeCard(
  request: FastifyRequest,
  { days, errors }: { readonly days: number; readonly errors: FieldErrors },
): Markup {
  const { account, t } = request.signedIn
  const { username } = account
  const grace = html`<p>${days === 0 ? t('close.at_once') : translateMarkup(t, 'close.days', { days })}</p>`
  return html`<section class="card">${grace}
<p>${translateMarkup(t, 'close.effect', { username })}</p>
<p>${translateMarkup(t, 'close.export', { link: '/settings/export' })}</p>
${settingsForm(
  request,
  html`${textLine({
    name: 'username',
    label: t('close.username'),
    value: formText(request, 'username') ?? '',
    autocomplete: 'off',
    error: errors.find(({ field }) => field === 'username')?.message,
  })}${submitButton('close', t('settings.close'))}`,
  PATH,
)}</section>`
}
