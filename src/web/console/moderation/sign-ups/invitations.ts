import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { inviteByStaff, listInvitations, recallInvitation } from '../../../../domain/moderation/sign-ups/invitations.js'
import type { InvitationRecord } from '../../../../persistence/accounts/invitation-records.js'
import { formNumber, formTime, pathId } from '../../../forms/form-fields.js'
import { formText } from '../../../forms/form-text.js'
import { html, type Markup } from '../../../pages/markup.js'
import { addFormAction } from '../../actions.js'
import { sendConsolePage } from '../../console-page.js'
import { actionForm, reasonField, textField, untilField } from '../../form-parts.js'
import { idNavigation, idPageIn } from '../../pager.js'
import { formatCount, formatTime } from '../../quantities.js'
import { listCard, stateBadge } from '../../tables.js'
import { newLinkIn, setNewLinkCookie } from './new-invitation-link.js'

/** `/admin/invitations`: invitations with the accounts that came by them. */
export const invitationRoutes: FastifyPluginAsync = async (app) => {
  const page = '/admin/invitations'

  app.get(page, { config: { power: 'moderation' }, schema: { hide: true } }, async (request, reply) => {
    const invitations = await listInvitations(request.services, request.console.actor, idPageIn(request))
    const link = newLinkIn(request, reply)
    return sendConsolePage(request, reply, {
      title: invitations.items.length === 0 ? 'Invitations: none' : 'Invitations',
      content: html`${link !== undefined && html`<section class="card"><h2>The new link</h2><p>It is shown only now: <code>${link}</code></p></section>\n`}
<section class="card">${listCard(invitationTable(request, invitations.items, request.services.now()), {
        empty: 'There are no invitations.',
        pages: idNavigation(page, {}, invitations),
      })}</section>
<section class="card"><h2>Invite</h2>${
        request.services.config.registrations === 'closed' &&
        html`<p>Invitations have no effect, because <code>REGISTRATIONS</code> is <code>closed</code>.</p>`
      }${inviteForm(request)}</section>`,
    })
  })

  addFormAction(app, {
    path: page,
    power: 'moderation',
    title: 'Invite',
    flash: 'invited',
    page,
    async run(request, _confirm, reply) {
      const input = {
        uses: formNumber(request, 'uses'),
        until: formTime(request, 'until'),
        note: formText(request, 'note'),
      }
      const { url } = await inviteByStaff(request.services, request.console.actor, input, {
        reason: formText(request, 'reason'),
      })
      setNewLinkCookie(reply, url)
    },
  })

  addFormAction(app, {
    path: `${page}/:id/recall`,
    power: 'moderation',
    title: 'Recall the invitation',
    flash: 'recalled',
    page,
    run: (request) =>
      recallInvitation(request.services, request.console.actor, pathId(request), {
        reason: formText(request, 'reason'),
      }),
  })
}

function invitationTable(request: FastifyRequest, invitations: readonly InvitationRecord[], now: Date) {
  return {
    caption: 'Invitations, newest first',
    columns: [
      { title: 'Invitation' },
      { title: 'State' },
      { title: 'Sign-ups', kind: 'number' as const },
      { title: 'Ends' },
      { title: 'By' },
      { title: 'Note', kind: 'wide' as const },
      { title: 'Accounts', kind: 'wide' as const },
      { title: 'Recall' },
    ],
    rows: invitations.map((invitation) => {
      const state = stateOf(invitation, now)
      return [
        invitation.id,
        stateBadge(state, state === 'open' ? 'good' : 'neutral'),
        `${formatCount(invitation.used)} of ${formatCount(invitation.uses)}`,
        formatTime(invitation.expiresAt),
        html`<bdi>${invitation.createdBy ?? '–'}</bdi>`,
        html`<bdi>${invitation.note ?? '–'}</bdi>`,
        html`${invitation.accounts.length === 0 ? '–' : invitation.accounts.map((name) => html`<bdi>${name}</bdi> `)}`,
        state === 'open' ? recallForm(request, invitation.id) : '–',
      ]
    }),
  }
}

function stateOf({ recalledAt, expiresAt, used, uses }: InvitationRecord, now: Date): string {
  if (recalledAt !== null) return 'recalled'
  if (expiresAt <= now) return 'ended'
  return used >= uses ? 'used' : 'open'
}

function recallForm(request: FastifyRequest, id: number): Markup {
  const content = html`${reasonField()}<button class="quiet">Recall invitation ${id}</button>`
  return html`<details><summary>Recall</summary>${actionForm(request, `/admin/invitations/${id}/recall`, content)}</details>`
}

function inviteForm(request: FastifyRequest): Markup {
  const content = html`${textField('Sign-ups (1 to 100)', 'uses', '1', { type: 'number' })}${untilField('Ends on (UTC, default: in two weeks)')}${textField('Note for moderators', 'note')}${reasonField()}<button>Make an invitation</button>`
  return actionForm(request, '/admin/invitations', content)
}
