import type { FastifyRequest } from 'fastify'
import { hasPower } from '../../../domain/accounts/role-powers.js'
import type { PodActivityReport, PodWithRules } from '../../../domain/operations/pods.js'
import type { ProbeStep } from '../../../persistence/models/remote-pod.js'
import { MAX_COUNTED, type UndeliveredMessage } from '../../../persistence/operations/pod-lists.js'
import {
  type DeliveryState,
  type PodStateFields,
  toDeliveryState,
} from '../../../persistence/outbound/delivery-state.js'
import type { KnownPod } from '../../../persistence/outbound/known-pods.js'
import { formatAddressHost } from '../../../protocol/address.js'
import { html, type Markup } from '../../pages/markup.js'
import { certificateEndOf } from '../../presenters/pods.js'
import type { ConsolePage } from '../console-page.js'
import { explainFault } from '../explain-fault.js'
import { actionForm, reasonField, untilField } from '../form-parts.js'
import { formatBoundedCount, formatCount, formatMilliseconds, formatRelativeTime, formatTime } from '../quantities.js'
import { dataTable, detailList, stateBadge } from '../tables.js'

export const DELIVERIES_SHOWN = 20

const STATE_COLOURS = {
  blocked: 'bad',
  paused: 'warn',
  asleep: 'warn',
  away: 'warn',
  proven: 'good',
  unproven: 'neutral',
} as const satisfies Readonly<Record<DeliveryState, string>>

export function podState(pod: PodStateFields, now: Date): Markup {
  const state = toDeliveryState(pod, now)
  return stateBadge(state, STATE_COLOURS[state])
}

/** Changes with each decision about the pod. */
export function versionOfPod({ blockedAt, limitedAt, pausedUntil, asleep }: KnownPod): string {
  return (
    [blockedAt, limitedAt, pausedUntil].map((time) => time?.toISOString() ?? '-').join(' ') + (asleep ? ' asleep' : '')
  )
}

/** The page of a pod: its health, its rules, waiting deliveries, and the forms. */
export function podPage(
  request: FastifyRequest,
  { pod, rules, activity, exchange, errors }: PodWithRules,
  undelivered: readonly UndeliveredMessage[],
): ConsolePage {
  const now = request.services.now()
  const host = formatAddressHost(pod)
  return {
    title: `${host}: ${toDeliveryState(pod, now)}`,
    content: html`<section class="card">${factsOf(pod, exchange, now)}</section>
${probeOf(pod)}<section class="card"><h2>Exchanges</h2>${activityOf(activity)}</section>
${errorsOf(errors)}<section class="card"><h2>Rules</h2>${rulesOf(rules)}<p><a href="/admin/people?pod=${encodeURIComponent(host)}">People of this pod</a></p></section>
<section class="card"><h2>Undelivered messages</h2>${
      undelivered.length === 0 ? html`<p>No deliveries wait for this pod.</p>` : deliveryTable(undelivered)
    }${pod.dead > 0 && html`<p><a href="/admin/dead-letters?pod=${encodeURIComponent(host)}">Dead letters of this pod</a></p>`}</section>
${actionsFor(request, pod)}`,
  }
}

function rulesOf(rules: PodWithRules['rules']): Markup {
  if (rules.length === 0) return html`<p>No rule concerns this pod.</p>`
  return html`<p>The first one counts.</p><ul class="history list">${rules.map(
    ({ id, domain, state, reason }) =>
      html`<li><a href="/admin/rules/${id}"><bdi>${domain}</bdi></a>: ${state}, <bdi>${reason}</bdi></li>\n`,
  )}</ul>`
}

function factsOf(pod: KnownPod, exchange: PodWithRules['exchange'], now: Date): Markup {
  const { software, softwareVersion, lastError } = pod
  const certificateEnd = certificateEndOf(pod)
  return detailList([
    ['State', podState(pod, now)],
    ['Last check', html`${pod.status.replaceAll('_', ' ')}, ${formatTime(pod.checkedAt)}`],
    ...(lastError === null ? [] : ([['Last error', html`<bdi>${lastError}</bdi>`]] as const)),
    ['Software', html`<bdi>${software ?? 'unknown'} ${softwareVersion ?? ''}</bdi>`],
    [
      'Certificate ends',
      certificateEnd === null ? 'unknown: the next probe sees it' : formatTime(new Date(certificateEnd)),
    ],
    ['People', formatBoundedCount(pod.people, MAX_COUNTED)],
    ['Followed by local users', html`${formatBoundedCount(exchange.localFollowers, MAX_COUNTED)} relations`],
    ['Following local users', html`${formatBoundedCount(exchange.remoteFollowers, MAX_COUNTED)} relations`],
    ['Waiting deliveries', formatBoundedCount(pod.waiting, MAX_COUNTED)],
    ['Oldest', formatRelativeTime(exchange.oldestWaiting, now)],
    ['In flight', currentDeliveriesText(pod, exchange)],
    ['Dead deliveries', formatBoundedCount(pod.dead, MAX_COUNTED)],
    ['Not stored while asleep', formatCount(pod.skippedDeliveries)],
    ['Failures in a row', formatCount(pod.failures)],
    ['Next attempt', formatTime(pod.nextTryAt)],
    ['Offline since', formatTime(pod.offlineSince)],
    ['Last success', formatTime(pod.lastSuccessAt)],
    ['Blocked', formatTime(pod.blockedAt)],
  ])
}

function currentDeliveriesText({ failures }: KnownPod, { isDelivering }: PodWithRules['exchange']): string {
  if (!isDelivering) return 'nothing'
  return failures > 0 ? 'one delivery, to find out whether the pod answers again' : 'deliveries are being sent'
}

const STEP_NAMES = {
  dns: 'Name',
  address: 'Address',
  tcp: 'Connection (TCP)',
  tls: 'Encryption (TLS)',
  http: 'Front page (HTTP)',
} as const satisfies Readonly<Record<ProbeStep['step'], string>>

/** The steps of the last probe. */
function probeOf({ probe }: KnownPod): Markup | '' {
  if (probe === null || probe.steps.length === 0) return ''
  return html`<section class="card"><h2>Last probe</h2><p class="soft small">${formatTime(new Date(probe.at))}</p>${dataTable(
    {
      caption: 'The steps of a connection, up to the first that fails',
      columns: [
        { title: 'Step' },
        { title: 'State' },
        { title: 'Time', kind: 'number' },
        { title: 'Result', kind: 'wide' },
      ],
      rows: probe.steps.map(({ step, ok, ms, detail }) => [
        STEP_NAMES[step],
        ok ? stateBadge('passed', 'good') : stateBadge('failed', 'bad'),
        formatMilliseconds(ms),
        html`<bdi>${detail}</bdi>`,
      ]),
    },
  )}</section>\n`
}

function errorsOf(errors: PodWithRules['errors']): Markup | '' {
  if (errors.length === 0) return ''
  return html`<section class="card"><h2>Last errors</h2>${dataTable({
    caption: 'The last errors of deliveries and checks, ten at most',
    columns: [{ title: 'Time' }, { title: 'Status' }, { title: 'Error', kind: 'wide' }],
    rows: errors.map(({ at, status, error }) => [
      formatTime(at),
      status.replaceAll('_', ' '),
      html`<bdi>${error}</bdi>`,
    ]),
  })}</section>\n`
}

/** Deliveries and messages of each of the last 14 days. */
function activityOf({ days, latency }: PodActivityReport): Markup {
  if (days.length === 0) return html`<p>There was no traffic with this pod in the last 14 days.</p>`
  const rows = days.map(({ day, delivered, failed, received, refused }) => [
    html`<time datetime="${day}">${day}</time>`,
    ...[delivered, failed, received, refused].map(formatCount),
  ])
  return html`<p>Deliveries of the last 24 hours: median ${formatMilliseconds(latency.p50)}, 95 % within ${formatMilliseconds(latency.p95)}.</p>${dataTable(
    {
      caption: 'Deliveries to the pod and messages from it, by day (UTC)',
      columns: [
        { title: 'Day' },
        { title: 'Delivered', kind: 'number' },
        { title: 'Failed', kind: 'number' },
        { title: 'Received', kind: 'number' },
        { title: 'Rejected', kind: 'number' },
      ],
      rows,
    },
  )}`
}

function deliveryTable(deliveries: readonly UndeliveredMessage[]): Markup {
  return dataTable({
    caption: `The latest undelivered messages, ${DELIVERIES_SHOWN} at most`,
    columns: [
      { title: 'Message' },
      { title: 'State' },
      { title: 'Attempts', kind: 'number' },
      { title: 'Last fault', kind: 'wide' },
      { title: 'Written' },
      { title: 'Due' },
    ],
    rows: deliveries.map(({ record, verb, state, attempts, fault, status, createdAt, dueAt }) => [
      `${record} (${verb})`,
      state === 'dead' ? stateBadge('given up', 'bad') : 'waiting',
      formatCount(attempts),
      fault === null ? '–' : `${fault}${status === null ? '' : ` (${status})`}. ${explainFault(fault)}`,
      formatTime(createdAt),
      state === 'dead' ? '–' : formatTime(dueAt),
    ]),
  })
}

interface PodForm {
  readonly title: string
  readonly text: string
  readonly button: Markup
  /** Fields besides the reason. */
  readonly fields?: Markup | false
}

function actionsFor(request: FastifyRequest, pod: KnownPod): Markup {
  const isAdmin = hasPower(request.console.staff.role, 'administration')
  const isBlocked = pod.blockedAt !== null
  const isPaused = toDeliveryState(pod, request.services.now()) === 'paused'
  const path = (action: string) => `/admin/pods/${encodeURIComponent(formatAddressHost(pod))}/${action}`
  const form = (action: string, { title, text, button, fields = false }: PodForm) =>
    html`<div><h2>${title}</h2><p>${text}</p>${actionForm(request, path(action), html`${reasonField()}${fields}${button}`, { version: versionOfPod(pod) })}</div>\n`
  return html`${
    isAdmin &&
    !isBlocked &&
    html`<section class="card"><h2>Probe</h2><p>Connects to the pod step by step now, and requests its front page and NodeInfo.</p>${actionForm(request, path('probe'), html`<button class="quiet">Probe now</button>`, { layout: 'buttons' })}</section>\n`
  }<section class="card choices">${
    isAdmin &&
    (isPaused
      ? form('resume', {
          title: 'Resume',
          text: 'What waits is sent now.',
          button: html`<button class="quiet">Resume the pod</button>`,
        })
      : form('pause', {
          title: 'Pause',
          text: 'Deliveries and fetches wait, at most 14 days. Messages from the pod are received as before.',
          button: html`<button class="quiet">Pause the pod</button>`,
          fields: untilField(),
        }))
  }${
    isAdmin &&
    form('wake', {
      title: 'Wake',
      text: 'Clears the failures of the pod; due deliveries are sent now.',
      button: html`<button class="quiet">Wake the pod</button>`,
    })
  }${
    isAdmin &&
    !isBlocked &&
    form('sleep', {
      title: 'Put to sleep',
      text: 'Gives up waiting deliveries, and stores none until the pod responds.',
      button: html`<button class="danger">Put to sleep…</button>`,
    })
  }${
    isBlocked
      ? form('unblock', {
          title: 'Unblock',
          text: 'Messages are exchanged again.',
          button: html`<button class="quiet">Unblock</button>`,
        })
      : form('block', {
          title: 'Block',
          text: 'Nothing is sent or fetched; messages of its people are dropped.',
          button: html`<button class="danger">Block…</button>`,
        })
  }</section>`
}
