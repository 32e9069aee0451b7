import type { FastifyRequest } from 'fastify'
import { hasPower } from '../../../domain/accounts/role-powers.js'
import type { PersonDetails } from '../../../domain/moderation/people/people.js'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import type { PersonRecord } from '../../../persistence/moderation/people-records.js'
import { splitAddress } from '../../../protocol/address.js'
import { html, type Markup } from '../../pages/markup.js'
import { previewList } from '../actions.js'
import type { ConsolePage } from '../console-page.js'
import { actionForm, checkbox, hiddenField, reasonField, textArea, untilField } from '../form-parts.js'
import { formatCount, formatTime } from '../quantities.js'
import { detailList, stateBadge } from '../tables.js'
import { actionList } from './action-list.js'
import { PERSON_ACTIONS, type PersonAction } from './person-actions.js'
import { contentForms } from './person-content.js'
import { roleForm } from './roles.js'
import { undoForm } from './undo-form.js'

const STATE_COLOURS = {
  open: 'good',
  silenced: 'warn',
  blocked: 'bad',
  locked: 'bad',
  closing: 'warn',
  closed: 'neutral',
} as const

export function personState({ state }: PersonRecord): Markup {
  return stateBadge(state, STATE_COLOURS[state])
}

/** The record of a person: restrictions with reasons, actions, and the forms. */
export function personPage(
  request: FastifyRequest,
  person: PersonDetails,
  { actions, isContactShown }: { readonly actions: readonly ActionRow[]; readonly isContactShown: boolean },
): ConsolePage {
  return {
    title: `${person.address}: ${person.state}`,
    content: html`<section class="card">${factsOf(person)}${person.isLocal && contactOf(person, isContactShown)}</section>
<section class="card"><h2>Restrictions</h2>${restrictions(request, person)}</section>
<section class="card"><h2>Counts</h2>${previewList(person.counts)}</section>
<section class="card"><h2>Actions</h2>${actionList(request, actions)}</section>
<section class="card"><h2>Notes</h2>${notes(request, person)}</section>
${person.state !== 'closed' && forms(request, person, String(actions[0]?.id ?? 0))}${
  person.state !== 'closed' && contentForms(request, person, String(actions[0]?.id ?? 0))
}`,
  }
}

function factsOf(person: PersonDetails): Markup {
  const { guid, address, isLocal } = person
  const host = splitAddress(address)?.host ?? ''
  const path = encodeURIComponent(guid)
  return detailList([
    ['Name', html`<bdi>${person.name}</bdi>`],
    ['State', personState(person)],
    [
      'Account',
      isLocal ? 'on this pod' : html`on <a href="/admin/pods/${encodeURIComponent(host)}"><bdi>${host}</bdi></a>`,
    ],
    ['Role', person.role ?? 'none'],
    ['First seen', formatTime(person.firstSeenAt)],
    ...(isLocal ? [['Warnings', formatCount(person.warnings)] as const] : []),
    ...(person.reportsMuted === null
      ? []
      : [['Reports by this person', person.reportsMuted ? 'muted' : 'not muted'] as const]),
    ['Guid', html`<bdi>${guid}</bdi>`],
    [
      'Links',
      html`<a href="/people/${path}">Public profile</a> · <a href="/admin/reports?state=all&amp;author=${path}">Cases about this person</a> · <a href="/admin/reports?state=all&amp;reporter=${path}">Reported by this person</a>`,
    ],
  ])
}

/** E-mail and network addresses are shown on request, which the audit log records. */
function contactOf(person: PersonDetails, isShown: boolean): Markup {
  if (!isShown) {
    return html`<p><a href="/admin/people/${encodeURIComponent(person.guid)}?contact=show">Show e-mail and network addresses</a> (recorded in the audit log)</p>`
  }
  const { email, signUpIp, signInIp, invitationId } = person
  return detailList([
    [
      'E-mail',
      email === null
        ? 'none'
        : html`<bdi>${email}</bdi>, ${person.emailConfirmedAt === null ? 'not confirmed' : 'confirmed'}`,
    ],
    ['Signed up from', signUpIp === null ? 'unknown' : html`<bdi>${signUpIp}</bdi>, ${formatTime(person.signedUpAt)}`],
    [
      'Last signed in from',
      signInIp === null ? 'unknown' : html`<bdi>${signInIp}</bdi>, ${formatTime(person.signInAt)}`,
    ],
    ['Last active', person.lastActiveAt === null ? 'unknown' : formatTime(person.lastActiveAt)],
    ['Invitation', invitationId === null ? 'none' : String(invitationId)],
  ])
}

/** Each restriction with its source: an action on the person, or a rule for the pod. */
function restrictions(request: FastifyRequest, { restrictions: own, address }: PersonRecord): Markup {
  if (own.length === 0) return html`<p>None.</p>`
  const host = splitAddress(address)?.host ?? ''
  return html`<ul class="history list">${own.map(
    ({ kind, by, until, actionId, power }) =>
      html`<li><b>${kind}</b> ${
        by === 'person'
          ? html`by an action on this person${actionId !== null && html`, number ${actionId}`}`
          : html`by a <a href="/admin/pods/${encodeURIComponent(host)}">rule for the pod</a>`
      }${until !== null && html`, until ${formatTime(new Date(until))}`}${actionId !== null && undoForm(request, { id: actionId, power: power ?? 'moderation' })}</li>\n`,
  )}</ul>`
}

/** Only moderators and admins read notes. */
function notes(request: FastifyRequest, { guid, notes: own }: PersonDetails): Markup {
  const form = html`${textArea('Note for moderators', 'text')}<button class="quiet">Add the note</button>`
  return html`${
    own.length > 0 &&
    html`<ul class="history">${own.map(
      ({ actor, text, createdAt }) =>
        html`<li>${formatTime(createdAt)} by <bdi>${actor.name}</bdi>: <bdi>${text}</bdi></li>\n`,
    )}</ul>`
  }${actionForm(request, `/admin/people/${encodeURIComponent(guid)}/notes`, form)}`
}

function forms(request: FastifyRequest, person: PersonDetails, version: string): Markup {
  const path = `/admin/people/${encodeURIComponent(person.guid)}`
  const possible = Object.entries<PersonAction>(PERSON_ACTIONS).filter(
    ([, { whose }]) => whose === 'both' || (whose === 'local') === person.isLocal,
  )
  return html`<section class="card choices">${possible.map(([name, { title, text, canEnd }]) => {
    const button = html`<button class="${name === 'silence' ? 'quiet' : 'danger'}">${title}${name === 'block' && '…'}</button>`
    const fields = html`${reasonField()}${canEnd && untilField()}${button}`
    return html`<div><h2>${title}</h2><p>${text}</p>${actionForm(request, `${path}/${name}`, fields, { version })}</div>\n`
  })}${person.isLocal && warnForm(request, `${path}/warn`, version)}${person.isLocal && closeForm(request, `${path}/close`, version)}${person.isLocal && muteForm(request, person, path)}${
    person.isLocal &&
    hasPower(request.console.staff.role, 'administration') &&
    html`<div><h2>Role</h2><p>It takes effect at the next request of the person.</p>${roleForm(request, person)}</div>`
  }</section>`
}

function warnForm(request: FastifyRequest, path: string, version: string): Markup {
  const content = html`${textArea('Text that the person reads', 'text')}${reasonField()}<button class="quiet">Warn</button>`
  return html`<div><h2>Warn</h2><p>The person sees the text after the next sign-in. No moderator is named.</p>${actionForm(request, path, content, { version })}</div>\n`
}

function closeForm(request: FastifyRequest, path: string, version: string): Markup {
  const isAdmin = hasPower(request.console.staff.role, 'administration')
  const content = html`${reasonField()}${checkbox('Retract comments and posts before', 'retract_content')}${
    isAdmin && checkbox('At once, without a grace period: final', 'immediately')
  }<button class="danger">Close the account…</button>`
  return html`<div><h2>Close the account</h2><p>The account is locked now and closed after the grace period. The owner cannot cancel this.</p>${actionForm(
    request,
    path,
    content,
    { version },
  )}</div>\n`
}

function muteForm(request: FastifyRequest, { reportsMuted }: PersonRecord, path: string): Markup {
  const isMuted = reportsMuted === true
  const title = isMuted ? 'Count the reports again' : 'Mute the reports'
  const content = html`${hiddenField('reports_muted', String(!isMuted))}${reasonField()}<button class="quiet">${title}</button>`
  return html`<div><h2>${title}</h2><p>Muted reports do not raise the rank of a case and do not notify moderators.</p>${actionForm(
    request,
    `${path}/mute_reports`,
    content,
  )}</div>`
}
