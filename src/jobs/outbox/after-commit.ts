import type { Knex } from 'knex'
import { outermost, runAfterCommit } from '../../persistence/database/transactions.js'
import type { Services } from '../../services/services.js'

/**
 * Collects items of a transaction and sends them to the queue together after the commit. Every item has a row, so that the sweeper
 * finds lost items.
 */
export function afterCommit<Item>(
  send: (services: Pick<Services, 'jobs'>, items: readonly Item[]) => Promise<void>,
): (services: Pick<Services, 'jobs'>, inner: Knex.Transaction, items: readonly Item[]) => void {
  const pending = new WeakMap<Knex.Transaction, Item[]>()
  return (services, inner, items) => {
    if (items.length === 0) return
    const transaction = outermost(inner)
    const pendingItems = pending.get(transaction)
    if (pendingItems) {
      pendingItems.push(...items)
      return
    }
    const newItems = [...items]
    pending.set(transaction, newItems)
    runAfterCommit(transaction, () => void send(services, newItems).catch(() => {}))
  }
}
