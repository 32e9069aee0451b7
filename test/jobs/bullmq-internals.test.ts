import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PostgresConnection, PostgresQueueBackend, Worker } from 'bullmq'
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { createTestDatabase } from '../support/databases/test-database.js'

const require = createRequire(import.meta.url)
/** The folder of the compiled library. */
const library = join(dirname(require.resolve('bullmq/package.json')), 'dist/esm')
const read = (path: string) => readFileSync(join(library, path), 'utf8')

const UPGRADE =
  'src/jobs/bullmq was written for BullMQ 6.7.0: read what it overrides in the new version, then change this test.'

const classes = { Worker, PostgresConnection, PostgresQueueBackend }

/** Members that src/jobs/bullmq overrides or calls, with the number of their parameters. */
const members: readonly (readonly [keyof typeof classes, string, number])[] = [
  ['Worker', 'moveToActive', 2],
  ['Worker', 'nextJobFromJobData', 3],
  ['PostgresConnection', 'waitUntilReady', 0],
  ['PostgresConnection', 'getListenClient', 0],
  ['PostgresConnection', 'close', 0],
  ['PostgresQueueBackend', 'addJob', 2],
  ['PostgresQueueBackend', 'moveToActive', 2],
  ['PostgresQueueBackend', 'moveToCompleted', 5],
  ['PostgresQueueBackend', 'waitForJob', 1],
  ['PostgresQueueBackend', 'disconnectBlocking', 0],
  ['PostgresQueueBackend', 'reconnectBlocking', 0],
  ['PostgresQueueBackend', 'disconnect', 0],
  ['PostgresQueueBackend', 'getClientList', 0],
]

const COLUMNS = [
  'job.added_at_ms bigint',
  'job.attempts_made integer',
  'job.attempts_started integer',
  'job.data jsonb',
  'job.dedup_id text',
  'job.deferred_failure text',
  'job.delay_ms bigint',
  'job.failed_reason text',
  'job.finished_at_ms bigint',
  'job.id text',
  'job.lock_token text',
  'job.locked_until_ms bigint',
  'job.max_attempts integer',
  'job.name text',
  'job.opts jsonb',
  'job.parent_id text',
  'job.parent_key text',
  'job.parent_queue text',
  'job.pending_deps integer',
  'job.priority integer',
  'job.process_at_ms bigint',
  'job.processed_at_ms bigint',
  'job.processed_by text',
  'job.progress jsonb',
  'job.queue text',
  'job.return_value jsonb',
  'job.scheduler_id text',
  'job.seq bigint',
  'job.stacktrace jsonb',
  'job.stalled_count integer',
  'job.stalled_marked boolean',
  'job.state USER-DEFINED',
  'meta.field text',
  'meta.queue text',
  'meta.value text',
]

describe('the internals of BullMQ that src/jobs/bullmq relies on', () => {
  it('are those of the version for which it was written', () => {
    expect(require('bullmq/package.json').version, UPGRADE).toBe('6.7.0')
  })

  it.each(members)('include %s.%s with %i parameters', (owner, name, parameters) => {
    const { prototype } = classes[owner]
    expect(Reflect.get(prototype, name), `${name} is gone. ${UPGRADE}`).toBeTypeOf('function')
    expect(Reflect.get(prototype, name).length, `${name} has other parameters. ${UPGRADE}`).toBe(parameters)
  })

  it('include the longest wait of a worker, as a getter', () => {
    const getter = Object.getOwnPropertyDescriptor(Worker.prototype, 'maximumBlockTimeout')?.get
    expect(getter, `maximumBlockTimeout is no getter any more. ${UPGRADE}`).toBeTypeOf('function')
  })

  it('include the event of a lost connection and the lock that suppresses events', () => {
    const connection = read('postgres/postgres-connection.js')
    expect(connection, `The connection has no such event. ${UPGRADE}`).toContain("'listenerinvalidated'")
    const statements = read('postgres/sql-scripts.js')
    expect(statements, `Events are suppressed in another way. ${UPGRADE}`).toContain('bullmq:evnotify:')
  })

  it('include the statements that add a job, which src/jobs/bullmq/add-job.ts runs as one', () => {
    const statements = read('postgres/sql-scripts.js')
    expect(statements, UPGRADE).toContain('CREATE FUNCTION next_job_id(p_queue text) RETURNS text')
    expect(statements, UPGRADE).toContain("nextval('job_seq')")
    expect(statements, UPGRADE).toContain("hashtext('bullmq:finalization')")
  })

  it('include the channel on which all added jobs are notified', () => {
    const backend = read('postgres/postgres-queue-backend.js')
    expect(backend, `Jobs are notified in another way. ${UPGRADE}`).toContain("NOTIFY_CHANNEL = 'bullmq_jobs'")
  })

  it('include the error name that ends all attempts of a job', () => {
    expect(read('classes/job.js'), UPGRADE).toContain("err.name == 'UnrecoverableError'")
  })

  it('include the columns of its tables', async () => {
    const database = await createTestDatabase()
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    try {
      const { rows } = await client.query<{ column: string }>(
        `select table_name || '.' || column_name || ' ' || data_type as column
         from information_schema.columns where table_schema = 'bullmq' and table_name in ('job', 'meta')
         order by table_name, column_name`,
      )
      const columns = rows.map(({ column }) => column)
      expect(columns, `exchange-jobs.ts reads and deletes rows of other columns. ${UPGRADE}`).toEqual(COLUMNS)
    } finally {
      await client.end()
      await database.drop()
    }
  })
})
