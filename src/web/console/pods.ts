import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { hasPower } from '../../domain/accounts/role-powers.js'
import { changePod, type PodAction } from '../../domain/operations/pods.js'
import { probeKnownPod } from '../../federation/discovery/pod-checks.js'
import {
  COUNTED_AT_MOST,
  type FailedDelivery,
  type ListedPod,
  listPodPage,
  listUndelivered,
  POD_SORTS,
  POD_STATES,
} from '../../persistence/operations/pod-pages.js'
import type { KnownPod } from '../../persistence/outbound/known-pods.js'
import { type PodState, type PodStateFields, podStateOf } from '../../persistence/outbound/pod-state.js'
import { addressHostOf } from '../../protocol/address.js'
import { formText } from '../oidc/form-text.js'
import { listNavigation } from '../pages/list-navigation.js'
import { html, type Markup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { RequestFault } from '../server/request-faults.js'
import { isConfirmed, sendConfirmationPage } from './confirmation.js'
import { sendConsolePage } from './console-page.js'
import { explainFault } from './fault-words.js'
import { findPodByName } from './find-pod.js'
import { actionForm, filterForm, reasonField, select, textField } from './form-parts.js'
import { ago, boundedCount, count, time } from './quantities.js'
import { dataTable, factList, stateWord } from './tables.js'

const SHOWN = 50
const LAST_PAGE = 200
const DELIVERIES_SHOWN = 20
/** Milliseconds between two probes of one pod. */
const PROBE_EVERY = 10_000

/** `/admin/pods`: other pods with their health and what waits for them. */
export const podRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const schema = { hide: true }

  app.get('/admin/pods', { config: { power: 'moderation' }, schema }, async (request, reply) => {
    const q = queryText(request, 'q')?.trim().toLowerCase()
    const state = oneOf(POD_STATES, queryText(request, 'state'))
    const sort = oneOf(POD_SORTS, queryText(request, 'sort')) ?? 'host'
    const page = pageIn(request)
    const filter = { q, state, sort }
    const found = await listPodPage(pod.db, filter, { offset: (page - 1) * SHOWN, limit: SHOWN + 1 })
    const isFiltered = q !== undefined || state !== undefined
    return sendConsolePage(request, reply, {
      title: page === 1 && found.length <= SHOWN ? `Pods: ${count(found.length)}` : `Pods, page ${page}`,
      content: html`<section class="card">
${filterForm(
  '/admin/pods',
  html`${textField('Host contains', 'q', q)}${select(
    'State',
    'state',
    [
      ['', 'all'],
      ['blocked', 'blocked'],
      ['asleep', 'asleep'],
      ['offline', 'offline'],
    ],
    state,
  )}${select(
    'Order',
    'sort',
    [
      ['host', 'name'],
      ['waiting', 'waiting deliveries'],
      ['failures', 'failures'],
    ],
    sort,
  )}`,
)}
${found.length === 0 ? html`<p>${isFiltered ? 'No pods match.' : 'No pod has been met.'}</p>` : podTable(found.slice(0, SHOWN), pod.now())}
${listNavigation('/admin/pods', { q, state, sort: sort === 'host' ? undefined : sort }, { page, hasMore: found.length > SHOWN })}</section>`,
    })
  })

  app.get('/admin/pods/:host', { config: { power: 'moderation' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    const undelivered = await listUndelivered(pod.db, other.id, DELIVERIES_SHOWN)
    return sendConsolePage(request, reply, {
      title: `${addressHostOf(other)}: ${podStateOf(other, pod.now())}`,
      content: html`<section class="card">${factsOf(other, pod.now())}</section>
<section class="card"><h2>Undelivered messages</h2>${
        undelivered.length === 0 ? html`<p>Nothing waits for this pod.</p>` : deliveryTable(undelivered)
      }${other.dead > 0 && html`<p><a href="/admin/dead-letters?pod=${encodeURIComponent(addressHostOf(other))}">Dead letters of this pod</a></p>`}</section>
${actionsFor(request, other)}`,
    })
  })

  app.post('/admin/pods/:host/probe', { config: { power: 'administration' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    if (other.blockedAt !== null) throw new RequestFault(409, 'The pod is blocked, so no request is sent to it.')
    if (other.checkedAt !== null && pod.now().getTime() - other.checkedAt.getTime() < PROBE_EVERY) {
      throw new RequestFault(429, 'The pod was probed a moment ago. Wait ten seconds.')
    }
    if (!(await probeKnownPod(pod, other))) throw new RequestFault(409, 'This is not a usable address of a pod.')
    return backTo(reply, other, 'probed')
  })

  app.post('/admin/pods/:host/wake', { config: { power: 'administration' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    await change(request, other, 'wake')
    return backTo(reply, other, 'woken')
  })

  app.post('/admin/pods/:host/sleep', { config: { power: 'administration' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    if (!isConfirmed(request, addressHostOf(other))) {
      const preview = html`<p>Gives up ${count(other.waiting)} waiting deliveries to the pod, and stores none until it responds again.</p>`
      return sendConfirmationPage(request, reply, {
        title: 'Put the pod to sleep',
        label: addressHostOf(other),
        preview,
      })
    }
    await change(request, other, 'sleep')
    return backTo(reply, other, 'asleep')
  })

  app.post('/admin/pods/:host/block', { config: { power: 'moderation' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    if (!isConfirmed(request, addressHostOf(other))) {
      const preview = html`<p>Nothing is sent to the pod or fetched from it any more, messages of its ${count(other.people)} known people are dropped, and ${count(other.waiting)} waiting deliveries are given up.</p>`
      return sendConfirmationPage(request, reply, { title: 'Block the pod', label: addressHostOf(other), preview })
    }
    await change(request, other, 'block')
    return backTo(reply, other, 'blocked')
  })

  app.post('/admin/pods/:host/unblock', { config: { power: 'moderation' }, schema }, async (request, reply) => {
    const other = await podIn(request)
    await change(request, other, 'unblock')
    return backTo(reply, other, 'unblocked')
  })

  async function podIn({ params }: FastifyRequest): Promise<KnownPod> {
    const { host } = params as { readonly host: string } // part of every route with it
    const found = await findPodByName(pod, host)
    if (found === undefined) throw new RequestFault(404, 'No pod at this address is known.')
    return found
  }

  async function change(request: FastifyRequest, other: KnownPod, action: PodAction): Promise<void> {
    const { id, host, port } = other
    await changePod(pod, request.console.actor, action, { id, host, port, reason: formText(request, 'reason') })
  }

  function backTo(reply: FastifyReply, other: KnownPod, notice: string): FastifyReply {
    return reply.redirect(`/admin/pods/${encodeURIComponent(addressHostOf(other))}?notice=${notice}`, 303)
  }
}

/** The page of a list; a number that cannot be read is the first page. */
function pageIn(request: FastifyRequest): number {
  const page = Number(queryText(request, 'page') ?? 1)
  return Number.isInteger(page) && page >= 1 && page <= LAST_PAGE ? page : 1
}

function oneOf<Value extends string>(values: readonly Value[], text: string | undefined): Value | undefined {
  return values.find((value) => value === text)
}

const STATE_LOOKS = {
  blocked: 'bad',
  paused: 'warn',
  asleep: 'warn',
  away: 'warn',
  proven: 'good',
  unproven: 'neutral',
} as const satisfies Readonly<Record<PodState, string>>

function stateOf(other: PodStateFields, now: Date): Markup {
  const state = podStateOf(other, now)
  return stateWord(state, STATE_LOOKS[state])
}

function podTable(pods: readonly ListedPod[], now: Date): Markup {
  return dataTable({
    caption: 'Known pods',
    columns: [
      { title: 'Pod' },
      { title: 'State' },
      { title: 'Last check' },
      { title: 'Software' },
      ...['People', 'Waiting', 'Oldest', 'Dead', 'Failures'].map((title) => ({ title, kind: 'number' as const })),
    ],
    rows: pods.map((other) => [
      html`<a href="/admin/pods/${encodeURIComponent(addressHostOf(other))}"><bdi>${addressHostOf(other)}</bdi></a>`,
      stateOf(other, now),
      other.status.replaceAll('_', ' '),
      html`<bdi>${other.software ?? '–'}</bdi>`,
      boundedCount(other.people, COUNTED_AT_MOST),
      boundedCount(other.waiting, COUNTED_AT_MOST),
      ago(other.oldestWaiting, now),
      boundedCount(other.dead, COUNTED_AT_MOST),
      count(other.failures),
    ]),
  })
}

function factsOf(other: KnownPod, now: Date): Markup {
  const { software, softwareVersion, lastError } = other
  return factList([
    ['State', stateOf(other, now)],
    ['Last check', html`${other.status.replaceAll('_', ' ')}, ${time(other.checkedAt)}`],
    ...(lastError === null ? [] : ([['Last error', html`<bdi>${lastError}</bdi>`]] as const)),
    ['Software', html`<bdi>${software ?? 'unknown'} ${softwareVersion ?? ''}</bdi>`],
    ['People', count(other.people)],
    ['Waiting deliveries', count(other.waiting)],
    ['Dead deliveries', count(other.dead)],
    ['Not stored while asleep', count(other.skippedDeliveries)],
    ['Failures in a row', count(other.failures)],
    ['Next attempt', time(other.nextTryAt)],
    ['Offline since', time(other.offlineSince)],
    ['Last success', time(other.lastSuccessAt)],
    ['Blocked', time(other.blockedAt)],
  ])
}

function deliveryTable(deliveries: readonly FailedDelivery[]): Markup {
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
      state === 'dead' ? stateWord('given up', 'bad') : 'waiting',
      count(attempts),
      fault === null ? '–' : `${fault}${status === null ? '' : ` (${status})`}. ${explainFault(fault)}`,
      time(createdAt),
      state === 'dead' ? '–' : time(dueAt),
    ]),
  })
}

function actionsFor(request: FastifyRequest, other: KnownPod): Markup {
  const isAdmin = hasPower(request.console.staff.role, 'administration')
  const isBlocked = other.blockedAt !== null
  const path = (action: string) => `/admin/pods/${encodeURIComponent(addressHostOf(other))}/${action}`
  const form = (action: string, title: string, text: string, button: Markup) =>
    html`<div><h2>${title}</h2><p>${text}</p>${actionForm(request, path(action), html`${reasonField()}${button}`)}</div>\n`
  return html`${
    isAdmin &&
    !isBlocked &&
    html`<section class="card"><h2>Probe</h2><p>Requests the front page and NodeInfo of the pod now.</p>${actionForm(request, path('probe'), html`<button class="quiet">Probe now</button>`, 'buttons')}</section>\n`
  }<section class="card choices">${
    isAdmin &&
    form(
      'wake',
      'Wake',
      'Forgets the failures of the pod; what is due is sent now.',
      html`<button class="quiet">Wake the pod</button>`,
    )
  }${
    isAdmin &&
    !isBlocked &&
    form(
      'sleep',
      'Put to sleep',
      'Gives up what waits, and stores nothing until the pod responds.',
      html`<button class="danger">Put to sleep…</button>`,
    )
  }${
    isBlocked
      ? form('unblock', 'Unblock', 'Messages are exchanged again.', html`<button class="quiet">Unblock</button>`)
      : form(
          'block',
          'Block',
          'Nothing is sent or fetched; messages of its people are dropped.',
          html`<button class="danger">Block…</button>`,
        )
  }</section>`
}
