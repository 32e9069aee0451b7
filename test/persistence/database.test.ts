import { createServer } from 'node:net'
import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  type DatabaseLimits,
  isDatabaseReachable,
  openDatabase,
  queryPrepared,
  queryRows,
} from '../../src/persistence/database/database.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { type OpenDatabase, openEmptyDatabase, openTestDatabase } from '../support/databases/test-database.js'

let database: OpenDatabase
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(() => database.close())

function at(time: string | number): Date {
  return new Date(time)
}

const opened: Knex[] = []
function open(limits: Partial<DatabaseLimits> = {}, url = database.url): Knex {
  const db = openDatabase({ ...WEB_DATABASE_LIMITS, ...limits, url, applicationName: 'pod test' })
  opened.push(db)
  return db
}
afterEach(async () => {
  for (const db of opened.splice(0)) await db.destroy()
})

async function selectValue<Value>(db: Knex, expression: string): Promise<Value> {
  return (await db.raw(`select ${expression} as value`)).rows[0].value
}

describe('a connection', () => {
  it('has the limits of the process that opened it', async () => {
    const settings = `
      select name, setting from pg_settings where name in ('application_name', 'statement_timeout', 'lock_timeout',
        'idle_in_transaction_session_timeout') order by name`

    const web = (await open().raw(settings)).rows
    const worker = (await open(WORKER_DATABASE_LIMITS).raw(settings)).rows

    expect(Object.fromEntries(web.map((row: { name: string; setting: string }) => [row.name, row.setting]))).toEqual({
      application_name: 'pod test',
      statement_timeout: '5000',
      lock_timeout: '3000',
      idle_in_transaction_session_timeout: '30000',
    })
    expect(worker).toContainEqual({ name: 'statement_timeout', setting: '20000' })
  })

  it('is abandoned within six seconds in the web process, and always later than the server cancels a statement', () => {
    expect(WEB_DATABASE_LIMITS.queryTimeoutMs).toBeLessThan(6_000)
    for (const { queryTimeoutMs, statementTimeoutMs } of [WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS]) {
      expect(queryTimeoutMs).toBeGreaterThan(statementTimeoutMs)
    }
  })

  it('reads ids and counts as numbers, days as texts and times as dates', async () => {
    const db = open()

    expect(await selectValue(db, '9007199254740991::int8')).toBe(Number.MAX_SAFE_INTEGER)
    expect(await selectValue(db, 'count(*)')).toBe(1)
    expect(await selectValue(db, `date '1004-02-29'`)).toBe('1004-02-29')
    expect(await selectValue(db, `timestamptz '2025-03-01 08:15:30.257+00'`)).toEqual(
      new Date('2025-03-01T08:15:30.257Z'),
    )
  })

  it('reads times, days and intervals of a database that writes them in another form', async () => {
    await using other = await openEmptyDatabase()
    for (const setting of ["datestyle = 'German'", "timezone = 'Asia/Tokyo'", "intervalstyle = 'iso_8601'"]) {
      await other.db.raw(`alter database ?? set ${setting}`, [new URL(other.url).pathname.slice(1)])
    }
    const db = open({}, other.url)

    expect(await selectValue(db, `'2026-07-31T20:00:00Z'::timestamptz`)).toEqual(at('2026-07-31T20:00:00Z'))
    expect(await selectValue(db, `'2026-07-31T20:00:00Z'::timestamptz::date`)).toBe('2026-07-31')
    expect(await selectValue(db, `interval '90 minutes'`)).toEqual({ hours: 1, minutes: 30 })
  })

  it('writes camelCase as snake_case', async () => {
    const db = open()
    await db('periodic').insert({ name: 'birthdays', lastRunAt: new Date('2025-03-01T00:00:00Z') })

    expect(await db('periodic').where({ name: 'birthdays' }).first()).toEqual({
      name: 'birthdays',
      lastRunAt: new Date('2025-03-01T00:00:00Z'),
    })
  })

  it('is replaced after the server has terminated it', async () => {
    const db = open({ pool: 1 })
    const pid = await selectValue<number>(db, 'pg_backend_pid()')

    await database.db.raw('select pg_terminate_backend(?, 5000)', [pid])

    const again = await queryTwice(() => selectValue<number>(db, 'pg_backend_pid()'))
    expect(again).not.toBe(pid)
  })

  it('is not used again after an abandoned statement', async () => {
    const db = open({ pool: 1, queryTimeoutMs: 1_000, statementTimeoutMs: 0 })
    const pid = await selectValue(db, 'pg_backend_pid()')

    const error = await db.raw('select pg_sleep(60)').catch((reason: unknown) => reason)

    expect(error).toMatchObject({ message: expect.stringMatching(/Query read timeout$/) })
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await selectValue(db, 'pg_backend_pid()')).not.toBe(pid)
  })

  it('is waited for no longer than the limit when all are in use', async () => {
    const db = open({ pool: 1, acquireTimeoutMs: 1_000 })
    const transaction = await db.transaction()

    const error = await db.raw('select 1').catch((reason: unknown) => reason)
    await transaction.rollback()

    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await selectValue(db, '1')).toBe(1)
  })

  it('names the failed statement in errors without its values', async () => {
    const error = await open()
      .raw(`select 1 / 0 where jsonb '{"a": 1}' \\? ?`, ['a private text'])
      .catch((reason: unknown) => reason)

    expect(error).toMatchObject({ code: '22012', message: expect.stringMatching(/^select 1 .* division by zero$/) })
    expect(error).not.toMatchObject({ message: expect.stringContaining('private') })
  })

  it('cancels a statement that takes too long', async () => {
    const db = open({ statementTimeoutMs: 1_000 })

    const error = await db.raw('select pg_sleep(60)').catch((reason: unknown) => reason)

    expect(error).toMatchObject({ code: '57014' })
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  it('cancels a wait for a lock', async () => {
    const db = open()
    const holder = await database.db.transaction()
    await holder.raw('lock table tags')

    const error = await db
      .transaction(async (transaction) => {
        await transaction.raw('set local lock_timeout = 50')
        await transaction.raw('lock table tags')
      })
      .catch((reason: unknown) => reason)
    await holder.rollback()

    expect(error).toMatchObject({ code: '55P03' })
    expect(isDatabaseUnavailable(error)).toBe(true)
  })
})

describe('isDatabaseReachable', () => {
  it('is true if the database answers', async () => {
    expect(await isDatabaseReachable(open(), 10_000)).toBe(true)
  })

  it('is false if no server listens', async () => {
    expect(await isDatabaseReachable(open({}, 'postgres://pod@127.0.0.1:1/none'))).toBe(false)
  })

  it('is false if the server accepts the connection and does not answer', async () => {
    const silentServer = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => silentServer.once('listening', resolve))
    const address = silentServer.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const sockets: { destroy(): unknown }[] = []
    silentServer.on('connection', (socket) => sockets.push(socket))
    const db = open({ acquireTimeoutMs: 200 }, `postgres://pod@127.0.0.1:${port}/none`)

    expect(await isDatabaseReachable(db, 50)).toBe(false)

    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => silentServer.close(resolve))
  })
})

describe('a prepared statement', () => {
  const count = 'select count(*) as "tagCount" from tags where name = $1'

  it('is planned once per connection', async () => {
    const db = open({ pool: 1 })

    await queryPrepared(db, 'count-tags', count, ['a'])
    await queryPrepared(db, 'count-tags', count, ['b'])

    const { rows } = await db.raw(`select name, statement from pg_prepared_statements`)
    expect(rows).toEqual([{ name: 'count-tags', statement: count }])
  })

  it('reads the changes of its transaction, and keeps the column names of its text', async () => {
    const db = open({ pool: 2 })
    await db.transaction(async (transaction) => {
      await transaction('tags').insert({ name: 'only-here' })

      expect(await queryPrepared(transaction, 'count-tags', count, ['only-here'])).toEqual([{ tagCount: 1 }])
      expect(await queryPrepared(db, 'count-tags', count, ['only-here'])).toEqual([{ tagCount: 0 }])
      await transaction('tags').where({ name: 'only-here' }).delete()
    })
  })

  it('is rejected after its transaction has ended', async () => {
    const transaction = await open().transaction()
    await transaction.commit()

    await expect(queryPrepared(transaction, 'count-tags', count, ['a'])).rejects.toThrow('has ended')
  })

  it('builds its text once', async () => {
    const db = open({ pool: 1 })
    let times = 0
    const text = () => {
      times += 1
      return count
    }

    for (const tag of ['a', 'b', 'c'])
      expect(await queryPrepared(db, 'count-tags', text, [tag])).toEqual([{ tagCount: 0 }])

    expect(times).toBe(1)
  })

  it('is rejected if another statement has its name', async () => {
    const db = open({ pool: 1 })
    await queryPrepared(db, 'one', 'select 1 as one', [])

    await expect(queryPrepared(db, 'one', 'select 2 as two', [])).rejects.toThrow(
      "'one' was used for a different statement",
    )

    expect(await queryPrepared(db, 'one', 'select 1 as one', [])).toEqual([{ one: 1 }])
  })

  it('reads the same values each time, of all types', async () => {
    const db = open({ pool: 1 })
    const text = `
      select $1::bigint as id, $2::timestamptz as time, $3::text[] as texts, $4::bytea as bytes, $5::json as json, $6::text as none`
    const values = [7, new Date('2025-03-01T08:15:30.250Z'), ['a', '"b"', null], Buffer.from('c'), { d: [1] }, null]
    const [id, time, texts, bytes, json, none] = values

    const twice = [await queryPrepared(db, 'kinds', text, values), await queryPrepared(db, 'kinds', text, values)]

    expect(twice).toEqual([[{ id, time, texts, bytes, json, none }], [{ id, time, texts, bytes, json, none }]])
  })

  it.each([
    ['nothing', 'text', []],
    ['names', 'text', ['alice', 'bob@pod.example:3000']],
    ['texts with special characters of arrays', 'text', ['NULL', 'a,b', '{c}', ' d ', '', 'é\n🦊', "'"]],
    ['quotation marks', 'text', ['"', 'say "a"']],
    ['backslashes', 'text', ['a', '\\', '\\"']],
    ['texts that are missing', 'text', ['a', null]],
    ['numbers', 'int', [1, -2, 2_147_483_647]],
    ['fractions', 'float8', [0.5, -1e-7, Number.NaN, Number.POSITIVE_INFINITY]],
    ['booleans', 'boolean', [true, false, null]],
    ['times', 'timestamptz', [at('2025-03-01T08:15:30.250Z'), at(0)]],
    ['times that are missing', 'timestamptz', [at(0), null]],
    [
      'the first and the last times of four digits',
      'timestamptz',
      [at('0001-01-01T00:00Z'), at('9999-12-31T23:59:59.999Z')],
    ],
    ['times before and after these', 'timestamptz', [at('-000043-03-15T12:00Z'), at('+010000-01-01T00:00Z')]],
  ])('writes arrays of %s unchanged', async (_what, type, list) => {
    const db = open({ pool: 1 })
    const text = `select $1::${type}[] as list`

    expect(await queryPrepared(db, `list of ${type}`, text, [list])).toEqual([{ list }])
  })

  it('may return no rows and no columns', async () => {
    const db = open({ pool: 1 })
    for (const tag of ['x', 'x']) {
      expect(await queryPrepared(db, 'no-rows', 'select id from tags where name = $1', [tag])).toEqual([])
      expect(await queryPrepared(db, 'no-columns', 'delete from tags where name = $1', [tag])).toEqual([])
    }
  })

  it('fails alone if a value cannot be written or read', async () => {
    const db = open({ pool: 1 })
    const circular: Record<string, unknown> = {}
    circular['itself'] = circular
    const moneyParser = pg.types.getTypeParser(pg.types.builtins.MONEY, 'text')
    pg.types.setTypeParser(pg.types.builtins.MONEY, () => {
      throw new Error('no such sum')
    })

    try {
      await expect(queryPrepared(db, 'circular', 'select $1::json', [circular])).rejects.toThrow(/circular/i)
      await expect(queryPrepared(db, 'sum', `select money '1'`, [])).rejects.toThrow('no such sum')
    } finally {
      pg.types.setTypeParser(pg.types.builtins.MONEY, moneyParser)
    }

    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })

  it('has the caller in the stack of its error', async () => {
    const error = await queryPrepared(open(), 'broken', 'select $1::int / 0', [1]).catch((reason: unknown) => reason)

    expect(error).toMatchObject({ stack: expect.stringContaining('database.test') })
  })

  it('closes its connection when it is abandoned', async () => {
    const db = open({ pool: 1, queryTimeoutMs: 1_000, statementTimeoutMs: 0 })

    const error = await queryPrepared(db, 'asleep', 'select pg_sleep($1)', [60]).catch((reason: unknown) => reason)

    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })

  it('releases its connection, also when it fails', async () => {
    const db = open({ pool: 1, acquireTimeoutMs: 5_000 })

    await expect(queryPrepared(db, 'broken', 'select $1::int / 0', [1])).rejects.toMatchObject({ code: '22012' })
    await expect(queryPrepared(db, 'broken', 'select $1::int / 0', [1])).rejects.toMatchObject({ code: '22012' })

    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })
})

/** The pool may hand out a broken connection once before it notices. */
async function queryTwice<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask()
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    return ask()
  }
}

describe('a statement with named values', () => {
  it('is rejected before it is sent if a name has no value', async () => {
    const text = "select cast(:first as integer) + :other as sum, '12:30'::text as time"

    await expect(queryRows(database.db, text, { first: 1 })).rejects.toThrow('has no value for :other.')
    expect(await queryRows(database.db, text, { first: 1, other: 2 })).toEqual([{ sum: 3, time: '12:30' }])
  })
})
