import { createServer } from 'node:net'
import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  isDatabaseReachable,
  openDatabase,
  queryPrepared,
  WEB_LIMITS,
  WORKER_LIMITS,
} from '../../src/persistence/database/database.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { type OpenDatabase, openTestDatabase } from './test-database.js'

let database: OpenDatabase
beforeAll(async () => {
  database = await openTestDatabase()
})
afterAll(() => database.close())

function at(time: string | number): Date {
  return new Date(time)
}

const opened: Knex[] = []
function open(limits: Partial<typeof WEB_LIMITS> = {}, url = database.url): Knex {
  const db = openDatabase({ ...WEB_LIMITS, ...limits, url, applicationName: 'pod test' })
  opened.push(db)
  return db
}
afterEach(async () => {
  for (const db of opened.splice(0)) await db.destroy()
})

async function answerTo<Value>(db: Knex, expression: string): Promise<Value> {
  return (await db.raw(`select ${expression} as value`)).rows[0].value
}

describe('a connection', () => {
  it('has the limits of the process that opened it', async () => {
    const settings = `
      select name, setting from pg_settings where name in ('application_name', 'statement_timeout', 'lock_timeout',
        'idle_in_transaction_session_timeout') order by name`

    const web = (await open().raw(settings)).rows
    const worker = (await open(WORKER_LIMITS).raw(settings)).rows

    expect(Object.fromEntries(web.map((row: { name: string; setting: string }) => [row.name, row.setting]))).toEqual({
      application_name: 'pod test',
      statement_timeout: '5000',
      lock_timeout: '3000',
      idle_in_transaction_session_timeout: '30000',
    })
    expect(worker).toContainEqual({ name: 'statement_timeout', setting: '20000' })
  })

  it('is given up for a client before six seconds are over, and only when the server itself did not give up', () => {
    expect(WEB_LIMITS.queryTimeout).toBeLessThan(6_000)
    for (const { queryTimeout, statementTimeout } of [WEB_LIMITS, WORKER_LIMITS]) {
      expect(queryTimeout).toBeGreaterThan(statementTimeout)
    }
  })

  it('reads ids and counts as numbers, days as texts and times as dates', async () => {
    const db = open()

    expect(await answerTo(db, '9007199254740991::int8')).toBe(Number.MAX_SAFE_INTEGER)
    expect(await answerTo(db, 'count(*)')).toBe(1)
    expect(await answerTo(db, `date '1004-02-29'`)).toBe('1004-02-29')
    expect(await answerTo(db, `timestamptz '2025-03-01 08:15:30.257+00'`)).toEqual(new Date('2025-03-01T08:15:30.257Z'))
  })

  it('writes camelCase as snake_case', async () => {
    const db = open()
    await db('periodic').insert({ name: 'birthdays', lastRunAt: new Date('2025-03-01T00:00:00Z') })

    expect(await db('periodic').where({ name: 'birthdays' }).first()).toEqual({
      name: 'birthdays',
      lastRunAt: new Date('2025-03-01T00:00:00Z'),
    })
  })

  it('that the server ended is replaced', async () => {
    const db = open({ pool: 1 })
    const pid = await answerTo<number>(db, 'pg_backend_pid()')

    await database.db.raw('select pg_terminate_backend(?, 5000)', [pid])

    const again = await untilAnswered(() => answerTo<number>(db, 'pg_backend_pid()'))
    expect(again).not.toBe(pid)
  })

  it('on which we gave up waiting is not used again', async () => {
    const db = open({ pool: 1, queryTimeout: 1_000, statementTimeout: 0 })
    const pid = await answerTo(db, 'pg_backend_pid()')

    const error = await db.raw('select pg_sleep(60)').catch((reason: unknown) => reason)

    expect(error).toMatchObject({ message: expect.stringMatching(/Query read timeout$/) })
    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await answerTo(db, 'pg_backend_pid()')).not.toBe(pid)
  })

  it('is not waited for longer than agreed when all are taken', async () => {
    const db = open({ pool: 1, acquireTimeout: 1_000 })
    const transaction = await db.transaction()

    const error = await db.raw('select 1').catch((reason: unknown) => reason)
    await transaction.rollback()

    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await answerTo(db, '1')).toBe(1)
  })

  it('says what failed without the values it was given', async () => {
    const error = await open()
      .raw(`select 1 / 0 where jsonb '{"a": 1}' \\? ?`, ['a private text'])
      .catch((reason: unknown) => reason)

    expect(error).toMatchObject({ code: '22012', message: expect.stringMatching(/^select 1 .* division by zero$/) })
    expect(error).not.toMatchObject({ message: expect.stringContaining('private') })
  })

  it('ends a statement that takes too long', async () => {
    const db = open({ statementTimeout: 1_000 })

    const error = await db.raw('select pg_sleep(60)').catch((reason: unknown) => reason)

    expect(error).toMatchObject({ code: '57014' })
    expect(isDatabaseUnavailable(error)).toBe(true)
  })

  it('ends a wait for a lock', async () => {
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
  it('is true for a database that answers', async () => {
    expect(await isDatabaseReachable(open(), 10_000)).toBe(true)
  })

  it('is false where nobody listens', async () => {
    expect(await isDatabaseReachable(open({}, 'postgres://pod@127.0.0.1:1/none'))).toBe(false)
  })

  it('is false for a server that takes the connection and says nothing', async () => {
    const mute = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => mute.once('listening', resolve))
    const address = mute.address()
    const port = typeof address === 'object' ? address?.port : undefined
    const sockets: { destroy(): unknown }[] = []
    mute.on('connection', (socket) => sockets.push(socket))
    const db = open({ acquireTimeout: 200 }, `postgres://pod@127.0.0.1:${port}/none`)

    expect(await isDatabaseReachable(db, 50)).toBe(false)

    for (const socket of sockets) socket.destroy()
    await new Promise((resolve) => mute.close(resolve))
  })
})

describe('a named statement', () => {
  const count = 'select count(*) as "howMany" from tags where name = $1'

  it('is planned once per connection', async () => {
    const db = open({ pool: 1 })

    await queryPrepared(db, 'count-tags', count, ['a'])
    await queryPrepared(db, 'count-tags', count, ['b'])

    const { rows } = await db.raw(`select name, statement from pg_prepared_statements`)
    expect(rows).toEqual([{ name: 'count-tags', statement: count }])
  })

  it('sees what its transaction has written, and names columns as its text does', async () => {
    const db = open({ pool: 2 })
    await db.transaction(async (transaction) => {
      await transaction('tags').insert({ name: 'only-here' })

      expect(await queryPrepared(transaction, 'count-tags', count, ['only-here'])).toEqual([{ howMany: 1 }])
      expect(await queryPrepared(db, 'count-tags', count, ['only-here'])).toEqual([{ howMany: 0 }])
      await transaction('tags').where({ name: 'only-here' }).delete()
    })
  })

  it('does not run after its transaction', async () => {
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
      expect(await queryPrepared(db, 'count-tags', text, [tag])).toEqual([{ howMany: 0 }])

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

  it('reads the same values each time, of all kinds', async () => {
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
    ['texts that mean something in a list', 'text', ['NULL', 'a,b', '{c}', ' d ', '', 'é\n🦊', "'"]],
    ['quotation marks', 'text', ['"', 'say "a"']],
    ['backslashes', 'text', ['a', '\\', '\\"']],
    ['texts that are missing', 'text', ['a', null]],
    ['numbers', 'int', [1, -2, 2_147_483_647]],
    ['fractions', 'float8', [0.5, -1e-7, Number.NaN, Number.POSITIVE_INFINITY]],
    ['answers', 'boolean', [true, false, null]],
    ['times', 'timestamptz', [at('2025-03-01T08:15:30.250Z'), at(0)]],
    ['times that are missing', 'timestamptz', [at(0), null]],
    [
      'the first and the last times of four digits',
      'timestamptz',
      [at('0001-01-01T00:00Z'), at('9999-12-31T23:59:59.999Z')],
    ],
    ['times before and after these', 'timestamptz', [at('-000043-03-15T12:00Z'), at('+010000-01-01T00:00Z')]],
  ])('writes lists of %s as they are', async (_what, type, list) => {
    const db = open({ pool: 1 })
    const text = `select $1::${type}[] as list`

    expect(await queryPrepared(db, `list of ${type}`, text, [list])).toEqual([{ list }])
  })

  it('may have no rows, and no columns', async () => {
    const db = open({ pool: 1 })
    for (const tag of ['x', 'x']) {
      expect(await queryPrepared(db, 'no-rows', 'select id from tags where name = $1', [tag])).toEqual([])
      expect(await queryPrepared(db, 'no-columns', 'delete from tags where name = $1', [tag])).toEqual([])
    }
  })

  it('fails alone where a value cannot be written or read', async () => {
    const db = open({ pool: 1 })
    const circle: Record<string, unknown> = {}
    circle['itself'] = circle
    const unreadable = pg.types.getTypeParser(pg.types.builtins.MONEY, 'text')
    pg.types.setTypeParser(pg.types.builtins.MONEY, () => {
      throw new Error('no such sum')
    })

    try {
      await expect(queryPrepared(db, 'circle', 'select $1::json', [circle])).rejects.toThrow(/circular/i)
      await expect(queryPrepared(db, 'sum', `select money '1'`, [])).rejects.toThrow('no such sum')
    } finally {
      pg.types.setTypeParser(pg.types.builtins.MONEY, unreadable)
    }

    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })

  it('says who has asked when it fails', async () => {
    const error = await queryPrepared(open(), 'broken', 'select $1::int / 0', [1]).catch((reason: unknown) => reason)

    expect(error).toMatchObject({ stack: expect.stringContaining('database.test') })
  })

  it('that nobody waits for any longer leaves its connection to nobody', async () => {
    const db = open({ pool: 1, queryTimeout: 1_000, statementTimeout: 0 })

    const error = await queryPrepared(db, 'asleep', 'select pg_sleep($1)', [60]).catch((reason: unknown) => reason)

    expect(isDatabaseUnavailable(error)).toBe(true)
    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })

  it('gives its connection back, also when it fails', async () => {
    const db = open({ pool: 1, acquireTimeout: 5_000 })

    await expect(queryPrepared(db, 'broken', 'select $1::int / 0', [1])).rejects.toMatchObject({ code: '22012' })
    await expect(queryPrepared(db, 'broken', 'select $1::int / 0', [1])).rejects.toMatchObject({ code: '22012' })

    expect(await queryPrepared(db, 'fine', 'select $1::int as one', [1])).toEqual([{ one: 1 }])
  })
})

/** A connection that just broke may be handed out once more before anybody knows. */
async function untilAnswered<Value>(ask: () => Promise<Value>): Promise<Value> {
  try {
    return await ask()
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    return ask()
  }
}
