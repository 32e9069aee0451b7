import type { FastifyPluginAsyncTypebox, TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import type { Actor } from '../../../domain/moderation/actor.js'
import { changePod, findPod, listPods, pausePod, readPod, resumePod } from '../../../domain/operations/pods.js'
import { probePodForAdmin } from '../../../federation/discovery/scheduled-pod-checks.js'
import { POD_LIST_FILTERS, POD_SORTS } from '../../../persistence/operations/pod-lists.js'
import type { KnownPod } from '../../../persistence/outbound/known-pods.js'
import type { Services } from '../../../services/services.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkOffsetPages, readOffsetPaging } from '../../api/offset-paging.js'
import { presentListedPod, presentPod } from '../../presenters/pods.js'
import { actionBody, actionRefusals, Changed } from '../../schemas/moderation/moderation.js'
import { ListedPodSchema, PodSchema, PodStatusName } from '../../schemas/pods.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Pods']
const params = Type.Object({ host: Type.String({ description: 'With its port if it is not 443.' }) })

/** Other pods. */
export const podRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/pods',
    {
      schema: {
        operationId: 'listPods',
        tags,
        summary: 'List known pods',
        description: 'Counts above 10 000 are 10 001.',
        querystring: Type.Object({
          q: Type.Optional(Type.String({ description: 'A part of the host.' })),
          state: Type.Optional(Type.Enum([...POD_LIST_FILTERS])),
          status: Type.Optional(PodStatusName),
          sort: Type.Optional(Type.Enum([...POD_SORTS], { default: 'host' })),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(ListedPodSchema), { description: 'The pods.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { q, state, status, sort = 'host', ...paging } = request.query
      const actor = await getRequestActor(request, 'moderation')
      const page = readOffsetPaging(paging)
      const pods = await listPods(request.services, actor, { q: q?.toLowerCase(), state, status, sort }, page)
      linkOffsetPages(request, reply, page, pods)
      return pods.items.map((listedPod) => presentListedPod(listedPod, request.services.now()))
    },
  )

  app.get(
    '/pods/:host',
    {
      schema: {
        operationId: 'getPod',
        tags,
        summary: 'Read a known pod',
        description:
          'With its health, and the rules for its host: the first one counts. Counts above 10 000 are 10 001.',
        params,
        response: { 200: refTo(PodSchema, 'The pod.') },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403, pod_not_found: 404 } },
    },
    async (request) => {
      const services = await readPod(
        request.services,
        await getRequestActor(request, 'moderation'),
        request.params.host,
      )
      return presentPod(services, request.services.now())
    },
  )

  addPodActions(app)

  app.post(
    '/pods/:host/probe',
    {
      schema: {
        operationId: 'probePod',
        tags,
        summary: 'Probe a pod',
        description:
          'Requests its front page and NodeInfo now, and stores the result. One probe of a pod in ten seconds.',
        params,
        response: { 200: refTo(PodSchema, 'The pod with the result.') },
      },
      config: {
        scopes: ['administration'],
        refusals: { role_needed: 403, pod_not_found: 404, pod_blocked: 409, pod_unusable: 409, probed_recently: 429 },
      },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'administration')
      const { host } = request.params
      await probePodForAdmin(request.services, actor, await findPod(request.services, actor, host))
      return presentPod(await readPod(request.services, actor, host), request.services.now())
    },
  )
}

interface PodChange {
  readonly reason?: string | undefined
  readonly until?: Date | undefined
}

interface PodActionRoute {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly canEnd: boolean
  /** Whether something has changed. */
  run(services: Services, actor: Actor, target: KnownPod, change: PodChange): Promise<boolean>
}

const ACTIONS: Readonly<Record<string, PodActionRoute>> = {
  pause: {
    operationId: 'pausePod',
    summary: 'Pause a pod',
    description:
      'Deliveries and fetches wait. Failures are not counted, and incoming messages are received as before. What waits expires 14 days after it was written.',
    canEnd: true,
    run: pausePod,
  },
  resume: {
    operationId: 'resumePod',
    summary: 'Resume a pod',
    description: 'Ends a pause. What waits is sent in the order of writing.',
    canEnd: false,
    run: resumePod,
  },
  wake: {
    operationId: 'wakePod',
    summary: 'Wake a pod',
    description: 'Forgets its failures; what is due, and what was given up in the last 14 days, is sent now.',
    canEnd: false,
    run: (services, actor, { id, host, port }, { reason }) =>
      changePod(services, actor, 'wake', { id, host, port, reason }),
  },
}

function addPodActions(app: FastifyInstance): void {
  const until = Type.Optional(Type.String({ description: 'The end, at most 14 days from now. Default: then.' }))
  for (const [name, { canEnd, run, ...words }] of Object.entries(ACTIONS)) {
    app.withTypeProvider<TypeBoxTypeProvider>().post(
      `/pods/:host/${name}`,
      {
        schema: {
          tags,
          ...words,
          params,
          body: Type.Object({ reason: actionBody.reason, ...(canEnd && { until }) }),
          response: {
            200: Type.Object({ changed: Changed, ...PodSchema.properties }, { description: 'The pod now.' }),
          },
        },
        config: {
          scopes: ['administration'],
          refusals: { ...actionRefusals, pod_not_found: 404, ...(canEnd && { until_invalid: 422 }) },
        },
      },
      async (request) => {
        const { reason, until: given } = request.body as PodChangeBody
        const { host } = request.params
        const actor = await getRequestActor(request, 'administration')
        const pod = await findPod(request.services, actor, host)
        const end = given === undefined ? undefined : readTime('until', given)
        const hasChanged = await run(request.services, actor, pod, { reason, until: end })
        return {
          changed: hasChanged,
          ...presentPod(await readPod(request.services, actor, host), request.services.now()),
        }
      },
    )
  }
}

interface PodChangeBody {
  readonly reason?: string
  readonly until?: string
}
