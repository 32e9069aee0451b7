import { setTimeout as pause } from 'node:timers/promises'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { openQueuePod } from '../support/pods/queue-pod.js'
import { noOpJob, readInstructions } from './no-op.js'

/** Acts as a web process: each request writes a row and enqueues a job in one transaction. Continues where it was killed. */
const instructions = readInstructions()
const pod = await openQueuePod(instructions)
process.send?.({ ready: true })

let pendingKeys = await findPendingKeys()
while (pendingKeys.length > 0) {
  try {
    await Promise.all(pendingKeys.map(produce))
    pendingKeys = await findPendingKeys()
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    await pause(50)
    pendingKeys = await findPendingKeys().catch(() => pendingKeys)
  }
}
await pod.close()
process.disconnect?.()

/** Keys of the next concurrent requests. After a kill some of them may be committed. */
async function findPendingKeys(): Promise<number[]> {
  const { rows } = await pod.db.raw(
    `select key from generate_series(1, ?::integer) as wanted(key)
     where not exists (select from produced where produced.key = wanted.key) order by key limit 5`,
    [instructions.jobs],
  )
  return rows.map((row: { key: number }) => row.key)
}

async function produce(key: number): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    const inserted = await transaction('produced').insert({ key }).onConflict().ignore().returning('key')
    // The row exists: the transaction was committed, and only its result was lost.
    if (inserted.length > 0) await enqueueJob(pod, transaction, noOpJob, { key })
  })
}
