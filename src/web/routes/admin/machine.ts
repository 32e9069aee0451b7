import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { readChecks } from '../../../domain/operations/checks.js'
import { listRunningProcesses, readDatabase, readStorage } from '../../../domain/operations/machine.js'
import { presentCheck, presentDatabase, presentProcess, presentStorage } from '../../presenters/operations.js'
import { Timestamp } from '../../schemas/formats.js'
import { nullable } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Machines']

const Process = Type.Object({
  id: Type.String(),
  kind: Type.String({ description: '`web` or `worker`.' }),
  host: Type.String(),
  pid: Type.Integer(),
  version: Type.String(),
  started_at: Timestamp,
  seen_at: Timestamp,
  rss_bytes: Type.Integer(),
  heap_bytes: Type.Integer(),
  busy_percent: Type.Integer({ description: 'Of the event loop, since the heartbeat before.' }),
  event_loop_p99_ms: nullable(
    Type.Integer({
      description:
        'How late the event loop was since the heartbeat before, 99 of 100 samples. Null: a process of an earlier version, as for `threads`.',
    }),
  ),
  threads: nullable(
    Type.Object({
      busy: Type.Integer(),
      max: Type.Integer(),
      waiting: Type.Integer({ description: 'Tasks that wait for a thread.' }),
    }),
  ),
  queues: Type.Array(Type.String()),
  jobs: Type.Array(
    Type.Object({ queue: Type.String(), name: Type.String(), attempt: Type.Integer(), since: Timestamp }),
    { description: 'Running jobs, without their data.' },
  ),
})

const Database = Type.Object(
  {
    version: Type.String(),
    bytes: Type.Number(),
    connections: Type.Integer(),
    max_connections: Type.Integer(),
    longest_transaction_seconds: nullable(Type.Number()),
    waiting_locks: Type.Integer(),
    transaction_age: Type.Number({ description: 'Transactions since the oldest row was frozen.' }),
    replicas: Type.Integer(),
    replica_lag_seconds: nullable(Type.Number()),
    slow_statements: Type.Array(
      Type.Object({
        text: Type.String({ description: 'Without values.' }),
        count: Type.Number(),
        max_ms: Type.Number(),
      }),
      { description: 'Those that took longest first.' },
    ),
    slow_statements_from: Type.Enum(['pg_stat_statements', 'sample'], {
      description:
        '`sample`: statements of more than half a second in the last hour, as the running processes have measured them.',
    }),
    tables: Type.Array(
      Type.Object({
        name: Type.String(),
        bytes: Type.Number(),
        rows: Type.Number({ description: 'An estimate of the server.' }),
        dead_rows: Type.Number(),
        vacuumed_at: nullable(Timestamp),
      }),
      { description: 'The largest first.' },
    ),
  },
  { description: 'The statistics of the server.' },
)

const Storage = Type.Object(
  {
    folders: Type.Array(
      Type.Object({
        folder: Type.String(),
        free_bytes: nullable(Type.Number({ description: 'Null: the folder cannot be read.' })),
        total_bytes: nullable(Type.Number()),
        nearly_full: Type.Boolean(),
      }),
      { description: 'The folders of the web process that answers.' },
    ),
    store: Type.Enum(['folder', 's3'], { description: 'The store of pictures.' }),
    pictures: nullable(
      Type.Object(
        {
          files: Type.Integer({ description: 'The files of all pictures, in all sizes.' }),
          bytes: Type.Integer(),
          orphans: Type.Integer({
            description: 'Files without a photo. `pod prune --files` deletes those that are older than a week.',
          }),
          orphan_bytes: Type.Integer(),
          counted_at: Timestamp,
        },
        { description: 'The last count, which a worker makes once a day. Null: no count was made yet.' },
      ),
    ),
    moved_photos: Type.Integer({
      description:
        'Photos of accounts that have moved away whose files are still here. They are deleted 90 days after the move.',
    }),
    backup: Type.Object(
      {
        age_seconds: nullable(Type.Number({ description: 'Null: there is none.' })),
        duration_seconds: nullable(Type.Number()),
        bytes: nullable(Type.Number()),
        tool: nullable(Type.String({ description: 'The program that made it. Null: the pod, or there is none.' })),
        verified_age_seconds: nullable(
          Type.Number({ description: 'Age of the newest backup that was restored or checked. Null: none was.' }),
        ),
        failed_runs: Type.Integer(),
      },
      { description: 'The last complete backup.' },
    ),
  },
  { description: 'Free space and pictures.' },
)

const Check = Type.Object({
  check: Type.String(),
  state: Type.Enum(['ok', 'warn', 'fail']),
  message: Type.String({ description: 'With the remedy, if there is one.' }),
  certificate_ends_at: nullable(Timestamp),
  checked_at: Timestamp,
})

/** Machine and software of the pod. */
export const machineRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const config = { scopes: ['administration'], refusals: { role_needed: 403 } } as const

  app.get(
    '/workers',
    {
      schema: {
        operationId: 'listProcesses',
        tags,
        summary: 'List the processes',
        description: 'Web and worker processes with a heartbeat in the last 30 seconds.',
        response: { 200: Type.Array(Process, { description: 'The processes.' }) },
      },
      config,
    },
    async (request) =>
      (await listRunningProcesses(request.services, await getRequestActor(request, 'administration'))).map(
        presentProcess,
      ),
  )

  app.get(
    '/database',
    {
      schema: {
        operationId: 'getDatabase',
        tags,
        summary: 'Read the state of the database',
        description: 'From the statistics of the server: no table is scanned.',
        response: { 200: Database },
      },
      config,
    },
    async (request) =>
      presentDatabase(await readDatabase(request.services, await getRequestActor(request, 'administration'))),
  )

  app.get(
    '/storage',
    {
      schema: {
        operationId: 'getStorage',
        tags,
        summary: 'Read the free space and the number of pictures',
        description: 'The free space of the folders for pictures and data, and the last count of the pictures.',
        response: { 200: Storage },
      },
      config,
    },
    async (request) =>
      presentStorage(await readStorage(request.services, await getRequestActor(request, 'administration'))),
  )

  app.get(
    '/checks',
    {
      schema: {
        operationId: 'listChecks',
        tags,
        summary: 'List the checks of the pod from outside',
        description:
          'A worker requests the pod at its own address every six hours, and compares clocks; `pod checks` does so at once. What needs an action comes first.',
        response: { 200: Type.Array(Check, { description: 'The last results. Empty: no check was made yet.' }) },
      },
      config,
    },
    async (request) =>
      (await readChecks(request.services, await getRequestActor(request, 'administration'))).map(presentCheck),
  )
}
