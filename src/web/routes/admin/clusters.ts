import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { cleanCluster } from '../../../domain/moderation/clusters/clean-cluster.js'
import { dismissCluster, listSpamClusters, readCluster } from '../../../domain/moderation/clusters/clusters.js'
import { previewCleaning } from '../../../domain/moderation/clusters/plan-cleaning.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentCleaning, presentCluster, presentClusterDetails, readCleanParts } from '../../presenters/clusters.js'
import {
  CleanPreviewSchema,
  ClusterDetailsSchema,
  ClusterSchema,
  ClusterState,
  cleanBody,
} from '../../schemas/moderation/clusters.js'
import { ActionSummary, actionBody, actionRefusals, Changed } from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'
import { sendOperation } from './operations.js'

const tags = ['Clusters']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
type State = Static<typeof ClusterState>

/** Groups of posts and comments that look like spam. */
export const clusterRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const refusals = { ...actionRefusals, cluster_not_found: 404, bad_transition: 409 } as const

  app.get(
    '/clusters',
    {
      schema: {
        operationId: 'listClusters',
        tags,
        summary: 'List spam clusters',
        description:
          'Public posts and comments that have a text, link, photo or set of mentions in common; newest first.',
        querystring: Type.Object({
          state: Type.Optional(
            Type.Unsafe<State | State[]>({
              anyOf: [ClusterState, { type: 'array', items: ClusterState }],
              description: 'May be repeated. Default: all.',
            }),
          ),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(ClusterSchema), { description: 'The clusters.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { state, ...paging } = request.query
      const states = state === undefined ? undefined : [state].flat()
      const actor = await getRequestActor(request, 'moderation')
      const page = await listSpamClusters(request.services, actor, { states }, readIdPaging(paging))
      linkIdPages(request, reply, page)
      return page.items.map(presentCluster)
    },
  )

  app.get(
    '/clusters/:id',
    {
      schema: {
        operationId: 'getCluster',
        tags,
        summary: 'Read a spam cluster',
        description: 'With its newest items and its authors.',
        params,
        response: { 200: refTo(ClusterDetailsSchema, 'The cluster.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, cluster_not_found: 404 } },
    },
    async (request) =>
      presentClusterDetails(
        await readCluster(request.services, await getRequestActor(request, 'moderation'), request.params.id),
      ),
  )

  app.post(
    '/clusters/:id/preview',
    {
      schema: {
        operationId: 'previewCleaning',
        tags,
        summary: 'Preview the cleaning of a cluster',
        description: 'Counts what the ticked parts would change. Changes nothing.',
        params,
        body: Type.Object(cleanBody),
        response: { 200: refTo(CleanPreviewSchema, 'What the cleaning would do.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, cluster_not_found: 404 } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      return presentCleaning(
        await previewCleaning(request.services, actor, request.params.id, readCleanParts(request.body)),
      )
    },
  )

  app.post(
    '/clusters/:id/clean',
    {
      schema: {
        operationId: 'cleanCluster',
        tags,
        summary: 'Clean a cluster',
        description:
          'Does all ticked parts as one action, which one undo takes back except for retractions. More than 500 items, and more than one removal, are confirmed with the number of removed items; more than 500 items are for admins.',
        params,
        body: Type.Object({
          ...cleanBody,
          ...actionBody,
          confirm: Type.Optional(Type.String({ description: 'The number of items that are removed.' })),
        }),
        response: {
          200: Type.Object(
            { action: Type.Optional(ActionSummary), changed: Changed, done: refTo(CleanPreviewSchema) },
            { description: 'The cluster is cleaned.' },
          ),
          202: Type.Object(
            {
              ...OperationSchema.properties,
              action: Type.Optional(ActionSummary),
              changed: Changed,
              preview: refTo(CleanPreviewSchema),
            },
            { description: 'More than 200 items and authors: the work in the background; `Location` leads to it.' },
          ),
        },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, confirmation_needed: 409, operation_running: 409 } },
    },
    async (request, reply) => {
      const { reason, case_id: caseId, confirm, ...parts } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const { preview, task, ...outcome } = await cleanCluster(
        request.services,
        actor,
        { id: request.params.id, ...readCleanParts(parts), confirm },
        { reason, caseId },
      )
      if (task === undefined) return { ...outcome, done: presentCleaning(preview) }
      return { ...sendOperation(reply, task), ...outcome, preview: presentCleaning(preview) }
    },
  )

  app.post(
    '/clusters/:id/dismiss',
    {
      schema: {
        operationId: 'dismissCluster',
        tags,
        summary: 'Dismiss a cluster',
        description: 'Closes it and its case. Content with the same key opens no cluster for a week.',
        params,
        body: Type.Object(actionBody),
        response: {
          200: Type.Object(
            { action: Type.Optional(ActionSummary), changed: Changed },
            { description: 'The cluster is dismissed.' },
          ),
        },
      },
      config: { scopes: ['moderation'], refusals },
    },
    async (request) => {
      const { reason, case_id: caseId } = request.body
      const actor = await getRequestActor(request, 'moderation')
      return dismissCluster(request.services, actor, request.params.id, { reason, caseId })
    },
  )
}
