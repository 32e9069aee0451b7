import type { Knex } from 'knex'
import type { Pod } from '../../pod/pod.js'

type Queue = Pick<Pod, 'jobs'>

/**
 * Gathers what a transaction has to tell the queue, and tells it all at once after the commit. What gets lost there has a row,
 * by which the sweeper finds it.
 */
export function afterCommit<Item>(
  tell: (pod: Queue, items: readonly Item[]) => Promise<void>,
): (pod: Queue, inner: Knex.Transaction, items: readonly Item[]) => void {
  const pending = new WeakMap<Knex.Transaction, Item[]>()
  return (pod, inner, items) => {
    if (items.length === 0) return
    const transaction = outermost(inner)
    const known = pending.get(transaction)
    if (known) {
      known.push(...items)
      return
    }
    const mine = [...items]
    pending.set(transaction, mine)
    transaction.executionPromise.then(
      () => tell(pod, mine).catch(() => {}),
      () => {}, // rolled back: there is nothing to tell
    )
  }
}

/** What runs inside another transaction commits with that. */
function outermost(transaction: Knex.Transaction): Knex.Transaction {
  return transaction.parentTransaction ? outermost(transaction.parentTransaction) : transaction
}
