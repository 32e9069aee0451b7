import type { Knex } from 'knex'

/** A database that rolls back each transaction once and runs it again, as after a deadlock. */
export function repeatTransactions(db: Knex): Knex {
  const rolledBack = new Error('The first attempt is rolled back.')
  async function transaction<Result>(work: (transaction: Knex.Transaction) => Promise<Result>): Promise<Result> {
    await db
      .transaction(async (first) => {
        await work(first)
        throw rolledBack
      })
      .catch((error: unknown) => {
        if (error !== rolledBack) throw error
      })
    return db.transaction(work)
  }
  return new Proxy(db, {
    get: (target, key, receiver) => (key === 'transaction' ? transaction : Reflect.get(target, key, receiver)),
  })
}
