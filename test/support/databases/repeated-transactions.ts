import type { Knex } from 'knex'

/** A database whose transactions are rolled back after their work, and run again: as after a deadlock, but each of them. */
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
