import pg from 'pg'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import { openJobQueues } from '../../src/jobs/queues/job-queues.js'
import { administer, createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'

const greet = defineJob<{ text: string }>()('notify', 'greet', retriedForHours)
const log = pino({ level: 'silent' })

type Jobs = Awaited<ReturnType<typeof openJobQueues>>

let database: TestDatabase
let ours: Jobs
beforeEach(async () => {
  database = await createTestDatabase()
  ours = await open({ isTuned: true })
})
afterEach(async () => {
  vi.restoreAllMocks()
  await ours.close()
  await database.drop()
})

function open({ isTuned }: { isTuned: boolean }): Promise<Jobs> {
  return openJobQueues({ redisUrl: undefined, databaseUrl: database.url, log, isTuned })
}

async function query<Row extends pg.QueryResultRow>(text: string): Promise<Row[]> {
  return administer(database.url, async (client) => (await client.query<Row>(text)).rows)
}

describe('a job that is added to the queue in PostgreSQL', () => {
  it.each([
    ['plain', {}],
    ['with a priority', { priority: 10 }],
    ['with a delay', { delay: 60_000 }],
    ['with a name', { deduplicationKey: 'a name' }],
  ])('%s, has the row that the library writes', async (_kind, options) => {
    const library = await open({ isTuned: false })
    const now = vi.spyOn(Date, 'now').mockReturnValue(1_800_000_000_000)
    await ours.add(greet, { text: 'hello' }, options)
    if ('deduplicationKey' in options) await query('truncate bullmq.dedup')
    await library.add(greet, { text: 'hello' }, options)
    now.mockRestore()
    await library.close()

    const [mine, theirs, ...others] = await query('select * from bullmq.job order by seq')
    expect(others).toEqual([])
    expect(mine).toEqual({ ...theirs, id: '1', seq: 1 })
    expect(theirs).toMatchObject({ id: '2', seq: 2 })
  })

  it('is notified to the workers of its queue, without an event', async () => {
    await administer(database.url, async (client) => {
      const heard: string[] = []
      client.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`))
      await client.query('listen bullmq_jobs; listen bullmq_events')
      await ours.add(greet, { text: 'hello' })

      await vi.waitFor(() => expect(heard).toEqual(['bullmq_jobs notify']))
    })
    expect(await query('select from bullmq.event')).toEqual([])
  })

  it('takes one statement, with a name that the server keeps', async () => {
    await ours.add(greet, { text: 'the first connection' })
    const statements = vi.spyOn(pg.Client.prototype, 'query')
    await ours.add(greet, { text: 'hello' })

    const names = statements.mock.calls.map(([statement]) => Reflect.get(Object(statement), 'name'))
    expect(names).toEqual(['added-job'])
  })
})
