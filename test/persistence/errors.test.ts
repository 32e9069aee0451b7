import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { isDatabaseUnavailable, isDeadlock, isUniqueViolation } from '../../src/persistence/database/errors.js'
import { inTransaction } from '../../src/persistence/database/transactions.js'
import { Tag } from '../../src/persistence/models/tag.js'
import { type OpenDatabase, openTestDatabase } from '../support/databases/test-database.js'

const withCode = (code: string) => Object.assign(new Error('of the database'), { code })

describe('isDatabaseUnavailable', () => {
  it.each(['08006', '08P01', '40001', '40P01', '53100', '53300', '57014', '57P01', '57P03', '55P03', '25P03'])(
    'is true for %s, after which a retry may succeed',
    (code) => expect(isDatabaseUnavailable(withCode(code))).toBe(true),
  )

  it.each(['23505', '23503', '23514', '22021', '22P02', '42P01', '42601', '0A000', 'XX000', '25P02', '28P01', '3D000'])(
    'is false for %s, after which a retry cannot succeed',
    (code) => expect(isDatabaseUnavailable(withCode(code))).toBe(false),
  )

  it.each(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'ABORT_ERR'])(
    'is true for %s',
    (code) => expect(isDatabaseUnavailable(withCode(code))).toBe(true),
  )

  it('is true for work that was aborted', () => {
    expect(isDatabaseUnavailable(AbortSignal.abort().reason)).toBe(true)
  })

  it('is false for unreachable pods and for bugs', () => {
    expect(isDatabaseUnavailable(new Error('The other pod did not answer.', { cause: withCode('ECONNREFUSED') }))).toBe(
      false,
    )
    expect(isDatabaseUnavailable(new TypeError('x is not a function'))).toBe(false)
    expect(isDatabaseUnavailable(withCode('ENOENT'))).toBe(false)
    expect(isDatabaseUnavailable('57P01')).toBe(false)
    expect(isDatabaseUnavailable(undefined)).toBe(false)
  })
})

describe('with a database', () => {
  let database: OpenDatabase
  let db: Knex
  beforeAll(async () => {
    database = await openTestDatabase()
    db = database.db
    await db('tags').insert([{ name: 'left' }, { name: 'right' }])
  })
  afterAll(() => database.close())

  it('recognises a unique violation by key, from knex and from a model', async () => {
    const plain = await db('tags')
      .insert({ name: 'left' })
      .catch((error: unknown) => error)
    const wrapped = await Tag.query(db)
      .insert({ name: 'left' })
      .catch((error: unknown) => error)

    for (const error of [plain, wrapped]) {
      expect(isUniqueViolation(error)).toBe(true)
      expect(isUniqueViolation(error, 'tags_name_key')).toBe(true)
      expect(isUniqueViolation(error, 'tags_pkey')).toBe(false)
      expect(isDatabaseUnavailable(error)).toBe(false)
    }
    expect(isUniqueViolation(await db.raw('select 1 / 0').catch((error: unknown) => error))).toBe(false)
  })

  it('runs a transaction again after a deadlock', async () => {
    let runs = 0
    const bothLocked = createBarrier(2)
    const lock = (first: string, second: string) => {
      let again = false
      return inTransaction(db, async (transaction) => {
        runs += 1
        if (again) return 'later'
        again = true
        await transaction('tags').where({ name: first }).forUpdate()
        await bothLocked()
        await transaction('tags').where({ name: second }).forUpdate()
        return 'at once'
      })
    }

    const ended = await Promise.all([lock('left', 'right'), lock('right', 'left')])

    expect(ended.sort()).toEqual(['at once', 'later'])
    expect(runs).toBe(3)
  })

  it('gives up after three more runs, with the last error', async () => {
    let runs = 0
    const conflicting = inTransaction(db, async (transaction) => {
      runs += 1
      await transaction.raw(`do $$ begin raise exception 'out of turn' using errcode = '40001'; end $$`)
    })

    await expect(conflicting).rejects.toSatisfy(isDeadlock)
    expect(runs).toBe(4)
  })

  it('does not repeat a transaction that fails for another reason', async () => {
    let runs = 0
    const duplicate = inTransaction(db, async (transaction) => {
      runs += 1
      await transaction('tags').insert({ name: 'left' })
    })

    await expect(duplicate).rejects.toSatisfy(isUniqueViolation)
    expect(runs).toBe(1)
  })
})

/** Returns a function that resolves once it was called this many times. */
function createBarrier(size: number): () => Promise<void> {
  let arrived = 0
  let open: () => void
  const complete = new Promise<void>((resolve) => {
    open = resolve
  })
  return () => {
    arrived += 1
    if (arrived >= size) open()
    return complete
  }
}
