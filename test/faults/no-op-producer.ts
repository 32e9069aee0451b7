import { setTimeout as pause } from 'node:timers/promises'
import { enqueueJob } from '../../src/jobs/outbox/enqueue-jobs.js'
import { isDatabaseUnavailable } from '../../src/persistence/database/errors.js'
import { openQueuePod } from '../support/pods/queue-pod.js'
import { noOpJob, readInstructions } from './no-op.js'

/** Acts as a web process: each request writes a row and enqueues a job in one transaction. Continues where it was killed. */
const instructions = readInstructions()
const pod = await openQueuePod(instructions)
process.send?.({ ready: true })

let missing = await nextMissing()
while (missing.length > 0) {
  try {
    await Promise.all(missing.map(produce))
    missing = await nextMissing()
  } catch (error) {
    if (!isDatabaseUnavailable(error)) throw error
    await pause(50)
    missing = await nextMissing().catch(() => missing)
  }
}
await pod.close()
process.disconnect?.()

/** Requests that run at the same time; a kill may leave some committed and others not. */
async function nextMissing(): Promise<number[]> {
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
