import type { FastifyInstance, FastifyPluginAsync, FastifyRequest } from 'fastify'
import { cleanCluster } from '../../../domain/moderation/clusters/clean-cluster.js'
import {
  dismissCluster,
  type ListedCluster,
  listSpamClusters,
  readCluster,
} from '../../../domain/moderation/clusters/clusters.js'
import { type CleanParts, previewCleaning } from '../../../domain/moderation/clusters/plan-cleaning.js'
import { CLUSTER_STATES } from '../../../persistence/moderation/clusters.js'
import { formChoice, formTexts, isTicked, pathId } from '../../forms/form-fields.js'
import { html } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { addFormAction, pathWithParameters, useCaseArguments } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { buildChoices, filterForm, select } from '../form-parts.js'
import { idNavigation, idPageIn } from '../pager.js'
import { formatCount, formatTime } from '../quantities.js'
import { listCard } from '../tables.js'
import { readActionOptions } from './case-form.js'
import { CLEAN_AUTHORS, CLEAN_PODS, clusterPage, clusterState, previewPage } from './cluster-page.js'

/** `/admin/clusters`: groups of posts and comments that look like spam. */
export const clusterRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/clusters', { config, schema }, async (request, reply) => {
    const state = queryText(request, 'state')
    const chosenState = CLUSTER_STATES.find((each) => each === state)
    const states = state === 'all' ? undefined : [chosenState ?? ('open' as const)]
    const page = await listSpamClusters(request.services, request.console.actor, { states }, idPageIn(request))
    const choices = select(
      'State',
      'state',
      [['', 'open'], ...buildChoices(CLUSTER_STATES.slice(1)), ['all', 'all']],
      state,
    )
    return sendConsolePage(request, reply, {
      title: page.items.length === 0 ? 'Spam clusters: none' : 'Spam clusters',
      content: html`<section class="card">${filterForm('/admin/clusters', choices)}
${listCard(clusterTable(page.items), { empty: 'No clusters match.', pages: idNavigation('/admin/clusters', { state }, page) })}</section>`,
    })
  })

  app.get('/admin/clusters/:id', { config, schema }, async (request, reply) => {
    const cluster = await readCluster(request.services, request.console.actor, pathId(request))
    return sendConsolePage(request, reply, clusterPage(request, cluster))
  })

  /** Counts what the ticked parts would change. */
  app.post('/admin/clusters/:id/preview', { config, schema }, async (request, reply) => {
    const id = pathId(request)
    const preview = await previewCleaning(request.services, request.console.actor, id, partsIn(request))
    return sendConsolePage(request, reply, previewPage(request, id, preview))
  })

  addClusterActions(app)
}

function addClusterActions(app: FastifyInstance): void {
  const common = {
    power: 'moderation',
    page: pathWithParameters('/admin/clusters/:id'),
    current: async (request: FastifyRequest) => {
      const cluster = await readCluster(...useCaseArguments(request))
      return { version: cluster.state, state: clusterState(cluster) }
    },
  } as const

  addFormAction(app, {
    ...common,
    path: '/admin/clusters/:id/clean',
    title: 'Clean the cluster',
    flash: 'cluster_cleaned',
    label: (_request, { remove }) => String(remove),
    run(request, confirm) {
      const cleaning = { id: pathId(request), ...partsIn(request), confirm }
      return cleanCluster(request.services, request.console.actor, cleaning, readActionOptions(request))
    },
  })
  addFormAction(app, {
    ...common,
    path: '/admin/clusters/:id/dismiss',
    title: 'Dismiss the cluster',
    flash: 'cluster_dismissed',
    run: (request) => dismissCluster(...useCaseArguments(request), readActionOptions(request)),
  })
}

/** Parts that are not ticked are left out. */
function partsIn(request: FastifyRequest): CleanParts {
  return {
    hide: isTicked(request, 'hide'),
    remove: isTicked(request, 'remove'),
    filter: isTicked(request, 'filter'),
    authors: formChoice(request, 'authors', CLEAN_AUTHORS) ?? 'none',
    pods: formChoice(request, 'pods', CLEAN_PODS) ?? 'none',
    except: formTexts(request, 'except'),
  }
}

function clusterTable(clusters: readonly ListedCluster[]) {
  return {
    caption: 'Clusters, newest first',
    columns: [
      { title: 'Cluster' },
      { title: 'State' },
      { title: 'Items', kind: 'number' as const },
      { title: 'Authors', kind: 'number' as const },
      { title: 'Pods', kind: 'number' as const },
      { title: 'First' },
      { title: 'Last' },
      { title: 'In common', kind: 'wide' as const },
    ],
    rows: clusters.map((cluster) => [
      html`<a href="/admin/clusters/${cluster.id}">${cluster.id}: ${cluster.kind}</a>`,
      clusterState(cluster),
      ...[cluster.itemCount, cluster.authorCount, cluster.podCount].map(formatCount),
      formatTime(cluster.firstAt),
      formatTime(cluster.lastAt),
      html`<bdi>${cluster.label}</bdi>`,
    ]),
  }
}
