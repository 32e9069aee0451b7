import type { Knex } from 'knex'
import { deleteOutboxRows, type JobContext } from './load-job.js'

/** The outbox rows of one or more jobs of a kind, for a handler that does their work together. */
export interface JobGroup<Data> {
  /** Deletes the rows in the transaction of their effect; returns the data of those that no other worker has done. */
  take(transaction: Knex.Transaction): Promise<readonly Data[]>
}

export function groupOfJob<Data>({ data, finish }: JobContext & { readonly data: Data }): JobGroup<Data> {
  return {
    async take(transaction) {
      await finish(transaction)
      return [data]
    },
  }
}

/** A row that this process has written. */
export interface OutboxRowOf<Data> {
  readonly id: number
  readonly data: Data
}

export function groupOfRows<Data>(rows: readonly OutboxRowOf<Data>[]): JobGroup<Data> {
  return {
    async take(transaction) {
      const deletedIds = await deleteOutboxRows(
        transaction,
        rows.map(({ id }) => id),
      )
      return rows.flatMap(({ id, data }) => (deletedIds.has(id) ? [data] : []))
    },
  }
}
