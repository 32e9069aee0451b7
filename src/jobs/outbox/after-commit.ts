import type { Knex } from 'knex'
import { outermost, runAfterCommit } from '../../persistence/database/transactions.js'
import type { Pod } from '../../pod/pod.js'

type Queue = Pick<Pod, 'jobs'>

/**
 * Collects items of a transaction and sends them to the queue together after the commit. Every item has a row, by which the sweeper
 * finds those that are lost.
 */
export function afterCommit<Item>(
  send: (pod: Queue, items: readonly Item[]) => Promise<void>,
): (pod: Queue, inner: Knex.Transaction, items: readonly Item[]) => void {
  const pending = new WeakMap<Knex.Transaction, Item[]>()
  return (pod, inner, items) => {
    if (items.length === 0) return
    const transaction = outermost(inner)
    const pendingWork = pending.get(transaction)
    if (pendingWork) {
      pendingWork.push(...items)
      return
    }
    const mine = [...items]
    pending.set(transaction, mine)
    runAfterCommit(transaction, () => void send(pod, mine).catch(() => {}))
  }
}
