import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import {
  createOwnInvitation,
  findInvitingRefusal,
  listOwnInvitations,
  recallOwnInvitation,
} from '../../domain/accounts/own-invitations.js'
import type { InvitationRecord } from '../../persistence/accounts/invitation-records.js'
import { formText } from '../forms/form-text.js'
import { textLine } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { refusalText } from '../pages/language/refusal-text.js'
import { html, type Markup } from '../pages/markup.js'
import { dayHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { readTime } from '../schemas/times.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const PATH = '/settings/invitations'
const FIELDS = {
  uses_invalid: 'uses',
  until_invalid: 'until',
  note_invalid: 'note',
  sign_up_closed: undefined,
  invitations_not_allowed: undefined,
  too_many_invitations: undefined,
} as const

/** The invitations of the signed-in user. */
export const invitationPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    { errors = [], url }: { readonly errors?: FieldErrors; readonly url?: string } = {},
  ) {
    const { t, viewer } = request.signedIn
    const refusal = await findInvitingRefusal(request.services, viewer)
    const invitations = await listOwnInvitations(request.services, viewer)
    return sendSettingsPage(request, reply, {
      title: t('settings.invitations'),
      errors,
      content: html`${url !== undefined && html`<section class="card"><h2>${t('invitations.link')}</h2><p>${t('invitations.link_about')} <code>${url}</code></p></section>\n`}<section class="card">${
        invitations.length === 0
          ? html`<p>${t('invitations.none')}</p>`
          : html`<ul class="entries">${invitations.map((invitation) => invitationEntry(request, invitation, services.now()))}</ul>`
      }</section>
<section class="card"><h2>${t('invitations.invite')}</h2>${refusal === undefined ? inviteForm(request, errors) : html`<p>${refusalText(t, refusal)}</p>`}</section>`,
    })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))

  app.post(PATH, route, async (request, reply) => {
    const { t, viewer } = request.signedIn
    if (formText(request, 'do') === 'recall') {
      await recallOwnInvitation(request.services, viewer, readRowId(formText(request, 'id') ?? ''))
      return redirectWithFlash(request, reply, 'invitation_recalled')
    }
    const until = formText(request, 'until')
    const input = {
      uses: Number(formText(request, 'uses') ?? 1),
      until: until === undefined ? undefined : readTime('until', until),
      note: formText(request, 'note'),
    }
    let url: string | undefined
    const errors = await collectFieldErrors(t, FIELDS, async () => {
      url = (await createOwnInvitation(request.services, viewer, input)).url
    })
    // The link is in this answer alone: it is stored nowhere.
    return show(request, reply, { errors, ...(url !== undefined && { url }) })
  })
}

function invitationEntry(request: FastifyRequest, invitation: InvitationRecord, now: Date): Markup {
  const { t } = request.signedIn
  const { id, note, uses, used, accounts, expiresAt, recalledAt } = invitation
  const isOpen = recalledAt === null && used < uses && expiresAt > now
  const state = recalledAt !== null ? 'recalled' : used >= uses ? 'used_up' : isOpen ? 'open' : 'ended'
  return html`<li><div><p><b>${t('invitations.entry', { id: String(id) })}</b>: ${t(`invitations.${state}`)}, ${t('invitations.used', { used, uses })} (${dayHtml(t, expiresAt)})</p>
${note !== null && note !== '' && html`<p class="soft small"><bdi>${note}</bdi></p>`}${
  accounts.length > 0 &&
  html`<p class="small">${t('invitations.came')} ${accounts.map((name, index) => html`${index > 0 && ', '}<bdi>${name}</bdi>`)}</p>`
}</div>
${
  isOpen &&
  settingsForm(
    request,
    html`<input type="hidden" name="id" value="${id}">
<button class="quiet" name="do" value="recall">${translateMarkup(t, 'invitations.recall', { id: String(id) })}</button>`,
  )
}</li>\n`
}

function inviteForm(request: FastifyRequest, errors: FieldErrors): Markup {
  const { t } = request.signedIn
  const isWrong = errors.length > 0
  const field = (name: 'uses' | 'until' | 'note', label: string, initial = '') =>
    textLine({
      name,
      label,
      value: isWrong ? (formText(request, name) ?? '') : initial,
      error: errors.find((error) => error.field === name)?.message,
    })
  return settingsForm(
    request,
    html`${field('uses', t('invitations.uses'), '1')}${field('until', t('invitations.until_label'))}${field('note', t('invitations.note'))}${submitButton('invite', t('invitations.make'))}`,
  )
}
