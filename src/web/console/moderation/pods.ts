import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { MODERATION_LIMITS } from '../../../domain/moderation/limits.js'
import { previewDetails, previewPodRule, ruleDomainOf } from '../../../domain/moderation/pods/pod-rules.js'
import {
  changePod,
  findPod,
  listPods,
  type PodAction,
  pausePod,
  readPod,
  resumePod,
} from '../../../domain/operations/pods.js'
import { probePodForAdmin } from '../../../federation/discovery/scheduled-pod-checks.js'
import { inEnglish } from '../../../languages/locales.js'
import {
  type ListedPod,
  listUndelivered,
  MAX_COUNTED,
  POD_LIST_FILTERS,
  POD_SORTS,
} from '../../../persistence/operations/pod-lists.js'
import type { KnownPod } from '../../../persistence/outbound/known-pods.js'
import { formatAddressHost } from '../../../protocol/address.js'
import { formTime, pathText } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { listNavigation } from '../../pages/list-navigation.js'
import { html } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { addFormAction, type CurrentState, type FormAction, pathWithParameters } from '../actions.js'
import { requireConfirmation } from '../confirmation.js'
import { sendConsolePage } from '../console-page.js'
import { buildChoices, filterForm, select, textField } from '../form-parts.js'
import { pageNumberIn } from '../pager.js'
import { formatBoundedCount, formatCount, formatRelativeTime } from '../quantities.js'
import { listCard } from '../tables.js'
import { DELIVERIES_SHOWN, podPage, podState, versionOfPod } from './pod-page.js'

const { pageItems } = MODERATION_LIMITS

/** `/admin/pods`: other pods with their health and waiting deliveries. */
export const podRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/pods', { config, schema }, async (request, reply) => {
    const q = queryText(request, 'q')?.trim().toLowerCase()
    const state = oneOf(POD_LIST_FILTERS, queryText(request, 'state'))
    const sort = oneOf(POD_SORTS, queryText(request, 'sort')) ?? 'host'
    const page = pageNumberIn(request)
    const rows = { offset: (page - 1) * pageItems, limit: pageItems }
    const { items, hasMore } = await listPods(request.services, request.console.actor, { q, state, sort }, rows)
    const isFiltered = q !== undefined || state !== undefined
    const fields = [
      textField('Host contains', 'q', q),
      select('State', 'state', buildChoices(POD_LIST_FILTERS, 'all'), state),
      select('Order', 'sort', SORTS, sort),
    ]
    const query = { q, state, sort: sort === 'host' ? undefined : sort }
    return sendConsolePage(request, reply, {
      title: page === 1 && !hasMore ? `Pods: ${formatCount(items.length)}` : `Pods, page ${page}`,
      content: html`<section class="card">${filterForm('/admin/pods', fields)}
${listCard(podTable(items, request.services.now()), {
  empty: isFiltered ? 'No pods match.' : 'No pod has been met.',
  pages: listNavigation(inEnglish, '/admin/pods', query, { page, hasMore }),
})}</section>`,
    })
  })

  app.get('/admin/pods/:host', { config, schema }, async (request, reply) => {
    const podWithRules = await readPod(request.services, request.console.actor, pathText(request, 'host'))
    const undeliveredMessages = await listUndelivered(request.services.db, podWithRules.pod.id, DELIVERIES_SHOWN)
    return sendConsolePage(request, reply, podPage(request, podWithRules, undeliveredMessages))
  })

  const add = (name: string, action: Pick<FormAction, 'power' | 'title' | 'flash'>, run: RunOnPod) =>
    addFormAction(app, {
      ...action,
      path: `/admin/pods/:host/${name}`,
      page: pageOfPod,
      current: currentPod,
      run: async (request) => run(request, await podIn(request)),
    })
  const power = 'administration'

  add('probe', { power, title: 'Probe', flash: 'probed' }, (request, pod) =>
    probePodForAdmin(request.services, request.console.actor, pod),
  )
  add('pause', { power, title: 'Pause the pod', flash: 'pod_paused' }, (request, pod) =>
    pausePod(request.services, request.console.actor, pod, {
      ...reasonIn(request),
      until: formTime(request, 'until'),
    }),
  )
  add('resume', { power, title: 'Resume the pod', flash: 'pod_resumed' }, (request, pod) =>
    resumePod(request.services, request.console.actor, pod, reasonIn(request)),
  )
  add('wake', { power, title: 'Wake the pod', flash: 'woken' }, changeTo('wake'))
  add('unblock', { power: 'moderation', title: 'Unblock the pod', flash: 'unblocked' }, changeTo('unblock'))

  addConfirmed('sleep', power, {
    title: 'Put the pod to sleep',
    flash: 'asleep',
    effect: () => html`<p>Gives up the waiting deliveries to the pod, and stores none until it responds again.</p>`,
    preview: async (_request, { waiting }) => ({ deliveries_waiting: waiting }),
  })
  addConfirmed('block', 'moderation', {
    title: 'Block the pod',
    flash: 'blocked',
    effect: () =>
      html`<p>This pod stops sending to the pod and fetching from it, messages of its people are dropped, and waiting deliveries are given up. Contacts there become inactive.</p>`,
    preview: async (request, pod) =>
      previewDetails(await previewPodRule(request.services, request.console.actor, ruleDomainOf(pod))),
  })

  /** The console requires a confirmation even if the use case does not. */
  function addConfirmed(
    name: PodAction,
    needed: FormAction['power'],
    { preview, ...action }: Pick<FormAction, 'title' | 'flash' | 'effect'> & { readonly preview: PreviewOfPod },
  ): void {
    addFormAction(app, {
      ...action,
      power: needed,
      path: `/admin/pods/:host/${name}`,
      page: pageOfPod,
      current: currentPod,
      label: async (request) => formatAddressHost(await podIn(request)),
      run: async (request, confirm) => {
        const pod = await podIn(request)
        await requireConfirmation(confirm, formatAddressHost(pod), () => preview(request, pod))
        await changeTo(name)(request, pod)
      },
    })
  }

  async function currentPod(request: FastifyRequest): Promise<CurrentState> {
    const pod = await podIn(request)
    return { version: versionOfPod(pod), state: podState(pod, request.services.now()) }
  }

  function changeTo(action: PodAction): RunOnPod {
    return (request, { id, host, port }) =>
      changePod(request.services, request.console.actor, action, { id, host, port, ...reasonIn(request) })
  }

  function podIn(request: FastifyRequest): Promise<KnownPod> {
    return findPod(request.services, request.console.actor, pathText(request, 'host'))
  }
}

const pageOfPod = pathWithParameters('/admin/pods/:host')

type PreviewOfPod = (request: FastifyRequest, pod: KnownPod) => Promise<object>

type RunOnPod = (request: FastifyRequest, pod: KnownPod) => Promise<unknown>

function reasonIn(request: FastifyRequest) {
  return { reason: formText(request, 'reason') }
}

function oneOf<Value extends string>(values: readonly Value[], text: string | undefined): Value | undefined {
  return values.find((value) => value === text)
}

const SORTS = [
  ['host', 'name'],
  ['waiting', 'waiting deliveries'],
  ['people', 'people'],
  ['failures', 'failures'],
] as const

function podTable(pods: readonly ListedPod[], now: Date) {
  return {
    caption: 'Known pods',
    columns: [
      { title: 'Pod' },
      { title: 'State' },
      { title: 'Last check' },
      { title: 'Software' },
      ...['People', 'Waiting', 'Oldest', 'Dead', 'Failures'].map((title) => ({ title, kind: 'number' as const })),
    ],
    rows: pods.map((pod) => [
      html`<a href="/admin/pods/${encodeURIComponent(formatAddressHost(pod))}"><bdi>${formatAddressHost(pod)}</bdi></a>`,
      podState(pod, now),
      pod.status.replaceAll('_', ' '),
      html`<bdi>${pod.software ?? '–'}</bdi>`,
      formatBoundedCount(pod.people, MAX_COUNTED),
      formatBoundedCount(pod.waiting, MAX_COUNTED),
      formatRelativeTime(pod.oldestWaiting, now),
      formatBoundedCount(pod.dead, MAX_COUNTED),
      formatCount(pod.failures),
    ]),
  }
}
