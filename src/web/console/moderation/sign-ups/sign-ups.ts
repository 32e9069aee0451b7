import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { hasPower } from '../../../../domain/accounts/role-powers.js'
import { decideSignUps, listSignUps } from '../../../../domain/accounts/sign-ups/open-sign-up.js'
import { endUnattendedPeriod } from '../../../../domain/accounts/sign-ups/unattended.js'
import { Refusal } from '../../../../domain/refusals.js'
import { countUndecidedSignUps, type UndecidedSignUp } from '../../../../persistence/accounts/pending-sign-ups.js'
import { findUnattendedSince } from '../../../../persistence/accounts/unattended-sign-ups.js'
import { formChoice, formTexts } from '../../../forms/form-fields.js'
import { formText } from '../../../forms/form-text.js'
import { html, type Markup } from '../../../pages/markup.js'
import { addFormAction } from '../../actions.js'
import { sendConsolePage } from '../../console-page.js'
import { actionForm, checkbox, reasonField, select, textField } from '../../form-parts.js'
import { idNavigation, idPageIn } from '../../pager.js'
import { formatCount, formatTime } from '../../quantities.js'
import { listCard } from '../../tables.js'

const PAGE = '/admin/sign-ups'
const DECISIONS = ['approve', 'reject'] as const
const DECISION_BATCH_SIZE = 100

/** `/admin/sign-ups`: sign-ups that wait for a decision. */
export const signUpRoutes: FastifyPluginAsync = async (app) => {
  app.get(PAGE, { config: { power: 'moderation' }, schema: { hide: true } }, async (request, reply) => {
    const { actor } = request.console
    const [found, waiting, since] = await Promise.all([
      listSignUps(request.services, actor, idPageIn(request)),
      countUndecidedSignUps(request.services.db),
      findUnattendedSince(request.services.db),
    ])
    const table = listCard(signUpTable(found.items), {
      empty: 'Nobody waits.',
      pages: idNavigation(PAGE, {}, found),
    })
    return sendConsolePage(request, reply, {
      title: `Sign-ups: ${waiting === 0 ? 'none waiting' : `${formatCount(waiting)} waiting`}`,
      content: html`${since !== null && unattendedCard(request, since)}
<section class="card">${found.items.length === 0 ? table : decisionForm(request, table)}</section>
<section class="card"><h2>Who may sign up</h2><p>Registrations: <code>${request.services.config.registrations}</code>. Approval: ${
        request.services.config.signUpApproval || since !== null
          ? 'each sign-up without an invitation'
          : 'where a rule asks for it'
      }. <a href="/admin/network-rules">Rules for e-mail addresses and networks</a> · <a href="/admin/invitations">Invitations</a></p></section>`,
    })
  })

  addFormAction(app, {
    path: `${PAGE}/decide`,
    power: 'moderation',
    title: 'Decide about the sign-ups',
    flash: 'sign_ups_decided',
    page: PAGE,
    run(request) {
      const ids = formTexts(request, 'ids').map(Number).filter(Number.isSafeInteger)
      const decision = formChoice(request, 'decision', DECISIONS)
      if (ids.length === 0 || decision === undefined) {
        throw new Refusal('nothing_chosen', 'Tick the sign-ups, and choose what happens with them.')
      }
      const text = formText(request, 'message')
      const decisionFields = { decision, reason: formText(request, 'reason'), answer: text }
      return decideSignUps(request.services, request.console.actor, ids.slice(0, DECISION_BATCH_SIZE), decisionFields)
    },
  })

  addFormAction(app, {
    path: `${PAGE}/attended`,
    power: 'administration',
    title: 'Accept sign-ups again',
    flash: 'sign_ups_attended',
    page: PAGE,
    run: (request) =>
      endUnattendedPeriod(request.services, request.console.actor, { reason: formText(request, 'reason') }),
  })
}

function unattendedCard(request: FastifyRequest, since: Date): Markup {
  const isAdmin = hasPower(request.console.staff.role, 'administration')
  const form = actionForm(
    request,
    `${PAGE}/attended`,
    html`${reasonField()}<button>Accept sign-ups without a decision again</button>`,
  )
  return html`<section class="card"><h2>No moderator was active</h2><p>Since ${formatTime(since)} each sign-up without an invitation needs a decision (<code>UNATTENDED_DAYS</code>). ${
    !isAdmin && 'An admin can end that.'
  }</p>${isAdmin && form}</section>`
}

function decisionForm(request: FastifyRequest, table: Markup): Markup {
  const choices = select('Ticked sign-ups', 'decision', [
    ['', 'choose'],
    ['approve', 'approve'],
    ['reject', 'reject'],
  ])
  const content = html`${table}<div class="entry">${choices}${reasonField()}${textField('Sentence for the person, in the mail about a rejection', 'message')}<button>Decide</button></div>`
  return actionForm(request, `${PAGE}/decide`, content, { layout: 'plain' })
}

function signUpTable(signUps: readonly UndecidedSignUp[]) {
  return {
    caption: 'Sign-ups that wait, newest first',
    columns: [
      { title: 'Username' },
      { title: 'E-mail', kind: 'wide' as const },
      { title: 'Reason', kind: 'wide' as const },
      { title: 'Language' },
      { title: 'Invitation' },
      { title: 'Network' },
      { title: 'Others from it', kind: 'number' as const },
      { title: 'Rules', kind: 'wide' as const },
      { title: 'Since' },
      { title: 'Ends' },
    ],
    rows: signUps.map((row) => [
      checkbox(html`<bdi>${row.username ?? ''}</bdi>`, 'ids[]', { value: String(row.id) }),
      emailCell(row),
      html`<bdi>${row.reason ?? '–'}</bdi>`,
      row.language,
      row.invitationId === null ? '–' : String(row.invitationId),
      row.network ?? '–',
      formatCount(row.othersOfNetwork),
      row.rules.length === 0 ? '–' : row.rules.join(', ').replaceAll('_', ' '),
      formatTime(row.createdAt),
      formatTime(row.expiresAt),
    ]),
  }
}

function emailCell({ email, confirmedAt }: UndecidedSignUp): Markup | string {
  if (email === null) return '–'
  return html`<bdi>${email}</bdi> (${confirmedAt === null ? 'not confirmed' : 'confirmed'})`
}
