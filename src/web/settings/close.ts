import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { closeOwnAccount, keepOwnAccount } from '../../domain/accounts/own-closing.js'
import { formText } from '../oidc/form-text.js'
import { linkPage } from '../pages/accounts/link-pages.js'
import { textLine } from '../pages/controls.js'
import { formPolicy } from '../pages/forms.js'
import { html, type Markup, trusted } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { doButton, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

const PATH = '/settings/close'
const KEEP = `${PATH}/keep`
const CLOSING_REFUSALS = { confirmation_needed: 'username', last_admin: undefined, podmin_account: undefined }

/** Closes the own account after a grace period, in which a sign-in leads here and can keep it. */
export const closeRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const config = { whileClosing: true } as const
  const schema = { hide: true }

  function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { closeAt } = request.member.account
    const isClosing = closeAt !== null
    const content = isClosing
      ? keepCard(request, closeAt)
      : closeCard(request, { days: pod.config.closeGraceDays, errors })
    return sendSettingsPage(request, reply, { title: 'Close the account', errors, content })
  }

  app.get(PATH, { config: { ...config, member: 'session' }, schema }, async (request, reply) => show(request, reply))

  app.post(PATH, { config: { ...config, member: 'proof' }, schema }, async (request, reply) => {
    const { account, browser } = request.member
    let closeAt = account.closeAt ?? pod.now()
    const errors = await changeOrErrors(CLOSING_REFUSALS, async () => {
      closeAt = await closeOwnAccount(pod, account.userId, formText(request, 'username') ?? '')
    })
    if (errors.length > 0) return show(request, reply, errors)
    await browser.signOut()
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ leadsToClient: false }))
      .send(
        linkPage({
          podName: pod.config.podName,
          title: 'Your account is being closed',
          content: html`<p role="status">Your account is closed on ${trusted(timeHtml(closeAt))}. Until then you can keep it: sign in again.</p>`,
        }),
      )
  })

  app.post(KEEP, { config: { ...config, member: 'session' }, schema }, async (request, reply) => {
    const errors = await changeOrErrors({ user_closed: undefined, closed_by_moderator: undefined }, () =>
      keepOwnAccount(pod, request.member.account.userId),
    )
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect('/settings?notice=kept', 303)
  })
}

function keepCard(request: FastifyRequest, closeAt: Date): Markup {
  return html`<section class="card"><p>Your account is closed on ${trusted(timeHtml(closeAt))}. Nothing is deleted before. Until then nobody is notified, and applications have no access.</p>
<p>If you keep the account, all is as before. Applications have access again.</p>
${settingsForm(request, doButton('keep', 'Keep the account'), KEEP)}</section>`
}

function closeCard(
  request: FastifyRequest,
  { days, errors }: { readonly days: number; readonly errors: FieldErrors },
): Markup {
  const { username } = request.member.account
  const grace =
    days === 0
      ? html`<p>The account is closed at once. This cannot be undone.</p>`
      : html`<p>Days until the account is closed: <b>${days}</b>. Until then nothing is deleted, and you can keep the account: sign in again.</p>`
  return html`<section class="card">${grace}
<p>Then your posts, photos, profile, contacts and settings are deleted, here and at the pods of your contacts. Your comments and messages stay without your name. Nobody can have the name <b><bdi>${username}</bdi></b> again.</p>
<p><a href="/settings/export">Export your data</a> first if you want to keep it or to move to another pod.</p>
${settingsForm(
  request,
  html`${textLine({
    ...{ name: 'username', label: 'Your username, as a confirmation', value: formText(request, 'username') ?? '' },
    autocomplete: 'off',
    error: errors.find(({ field }) => field === 'username')?.message,
  })}${doButton('close', 'Close the account')}`,
  PATH,
)}</section>`
}
