import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Actor } from '../../../domain/moderation/actor.js'
import {
  type ConfirmedQueueChange,
  discardJobs,
  drainQueue,
  findQueue,
  listJobs,
  listQueues,
  pauseQueue,
  promoteJobs,
  resumeQueue,
} from '../../../domain/operations/queues.js'
import { JOB_STATES } from '../../../jobs/queues/inspect-queues.js'
import { QUEUES, type QueueName } from '../../../jobs/queues/queue-names.js'
import { QueueUnavailable } from '../../../jobs/queues/queue-unavailable.js'
import type { Services } from '../../../services/services.js'
import { cursorPaging, readCursor } from '../../api/cursor-paging.js'
import { JOB_CURSOR, jobCursors, readJobPage } from '../../api/job-paging.js'
import { linkCursors } from '../../api/page-links.js'
import { presentOperation, presentQueue, presentQueueJob } from '../../presenters/operations.js'
import { actionBody, actionRefusals, Changed } from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { confirmBody, QueueJobSchema, QueueSchema } from '../../schemas/operations.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { RequestFault } from '../../server/request-faults.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Queues']
const params = Type.Object({ name: Type.Enum([...QUEUES]) })
const { reason } = actionBody
const until = Type.Optional(
  Type.String({ description: 'When the queue runs again by itself. Default: when it is resumed.' }),
)

const Count = Type.Integer({ description: 'The number of jobs.' })

/** The queues and what an admin can do about them. */
export const queueRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const reading = { scopes: ['administration'], refusals: { role_needed: 403 } } as const
  const changeConfig = { scopes: ['administration'], refusals: { ...actionRefusals, queue_not_pausable: 422 } } as const
  const confirmConfig = { ...changeConfig, refusals: { ...changeConfig.refusals, confirmation_needed: 409 } } as const

  app.get(
    '/queues',
    {
      schema: {
        operationId: 'listQueues',
        tags,
        summary: 'List the queues',
        description: 'All queues with their work and their speed.',
        response: { 200: Type.Array(refTo(QueueSchema), { description: 'The queues.' }) },
      },
      config: reading,
    },
    async (request) => {
      await getRequestActor(request, 'administration')
      const queues = await listQueues(request.services)
      if (queues === undefined) throw new QueueUnavailable('The queue is unavailable.')
      return queues.map(presentQueue)
    },
  )

  app.get(
    '/queues/:name/jobs',
    {
      schema: {
        operationId: 'listQueueJobs',
        tags,
        summary: 'List the jobs of a queue',
        description: 'Without their data. Failed jobs come latest first, others in the order in which they run.',
        params,
        querystring: Type.Object({
          state: Type.Optional(Type.Enum([...JOB_STATES], { default: 'waiting' })),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(QueueJobSchema), { description: 'The jobs.' }) },
      },
      config: reading,
    },
    async (request, reply) => {
      const { state = 'waiting', ...paging } = request.query
      await getRequestActor(request, 'administration')
      const { limit, groups } = readCursor(paging, JOB_CURSOR)
      const jobs = await listJobs(request.services, request.params.name, state, readJobPage(groups, limit))
      linkCursors(request, reply, jobCursors(jobs))
      return jobs.items.map(presentQueueJob)
    },
  )

  for (const [name, { summary, description, run }] of Object.entries({
    pause: {
      summary: 'Pause a queue',
      description: 'Running jobs finish, and no other job starts. New jobs are accepted and wait.',
      run: pauseQueue,
    },
    resume: { summary: 'Resume a queue', description: 'Ends a pause or a drain.', run: resumeQueue },
  })) {
    app.post(
      `/queues/:name/${name}`,
      {
        schema: {
          operationId: `${name}Queue`,
          tags,
          summary,
          description,
          params,
          body: Type.Object({ reason, ...(name === 'pause' && { until }) }),
          response: {
            200: Type.Object({ changed: Changed, queue: refTo(QueueSchema) }, { description: 'The queue now.' }),
          },
        },
        config: changeConfig,
      },
      async (request) => changedQueue(request, await run(...(await changeOf(request)))),
    )
  }

  app.post(
    '/queues/:name/drain',
    {
      schema: {
        operationId: 'drainQueue',
        tags,
        summary: 'Drain a queue',
        description:
          'The queue accepts no new jobs, and the workers finish the existing ones. What would have been added waits in the database; the inbound endpoint answers 503.',
        params,
        body: Type.Object({ reason, until, ...confirmBody }),
        response: {
          200: Type.Object({ changed: Changed, queue: refTo(QueueSchema) }, { description: 'The queue now.' }),
        },
      },
      config: confirmConfig,
    },
    async (request) => changedQueue(request, await drainQueue(...(await changeOf(request)))),
  )

  app.post(
    '/queues/:name/promote',
    {
      schema: {
        operationId: 'promoteJobs',
        tags,
        summary: 'Make delayed jobs due',
        description: 'The earliest thousand at most.',
        params,
        body: Type.Object({
          reason,
          name: Type.Optional(Type.String({ description: 'Only jobs of this name.' })),
          pod: Type.Optional(Type.String({ description: 'Only jobs that deliver to this pod or fetch from it.' })),
        }),
        response: { 200: Type.Object({ count: Count }, { description: 'The jobs that are due now.' }) },
      },
      config: { ...changeConfig, refusals: actionRefusals },
    },
    async (request) => {
      const [services, actor, queue, change] = await changeOf(request)
      return {
        count: await promoteJobs(services, actor, queue, { ...change, name: request.body.name, pod: request.body.pod }),
      }
    },
  )

  app.post(
    '/queues/:name/discard',
    {
      schema: {
        operationId: 'discardJobs',
        tags,
        summary: 'Discard waiting jobs',
        description:
          'Deletes waiting jobs. Those that the database remembers are added again; messages of the inbound queues become dead letters.',
        params,
        body: Type.Object({ reason, ...confirmBody }),
        response: {
          200: Type.Object({ count: Count }, { description: 'The discarded jobs, of an inbound queue the messages.' }),
          202: refTo(
            OperationSchema,
            'More than 200 jobs of an inbound queue: the work in the background; `Location` leads to it.',
          ),
        },
      },
      config: { ...confirmConfig, refusals: { ...confirmConfig.refusals, operation_running: 409 } },
    },
    async (request, reply) => {
      const { count, task } = await discardJobs(...(await changeOf(request)))
      if (task === undefined) return { count }
      reply.code(202).header('location', `/api/admin/v1/operations/${task.id}`)
      return presentOperation(task)
    },
  )
}

interface ChangeRequest extends FastifyRequest {
  readonly params: { readonly name: QueueName }
  readonly body: { readonly reason?: string; readonly until?: string; readonly confirm?: string }
}

async function changeOf(request: FastifyRequest): Promise<[Services, Actor, QueueName, ConfirmedQueueChange]> {
  const {
    params: { name },
    body,
  } = request as ChangeRequest // the routes declare both
  const { until: end, ...change } = body
  const isAfterNow = end === undefined || readTime('until', end) > request.services.now()
  if (!isAfterNow) throw new RequestFault(422, '"until" must be in the future.', { field: 'until' })
  return [
    request.services,
    await getRequestActor(request, 'administration'),
    name,
    { ...change, ...(end !== undefined && { until: readTime('until', end) }) },
  ]
}

async function changedQueue(request: FastifyRequest, hasChanged: boolean) {
  const { name } = (request as ChangeRequest).params
  const queue = await findQueue(request.services, name)
  if (queue === undefined) throw new QueueUnavailable('The queue is unavailable.')
  return { changed: hasChanged, queue: presentQueue(queue) }
}
