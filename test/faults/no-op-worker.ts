import { setTimeout as pause } from 'node:timers/promises'
import type { JobHandlers } from '../../workers/handlers/job-handlers.js'
import { maintenanceHandlers } from '../../workers/handlers/maintenance.js'
import { startWorkers } from '../../workers/start-workers.js'
import { openQueuePod } from '../support/pods/queue-pod.js'
import { type noOpJob, readInstructions } from './no-op.js'

const handlers: JobHandlers<typeof noOpJob> = {
  async 'no-op'({ db }, work) {
    process.send?.({ begun: work.data.key })
    await pause(work.data.milliseconds ?? 5) // so that a job is always active
    await db.transaction(async (transaction) => {
      await transaction('effects').insert({ key: work.data.key })
      await work.finish(transaction)
    })
  },
}

const pod = await openQueuePod(readInstructions())
const workers = startWorkers(pod, {
  handlers: { notify: handlers, maintenance: maintenanceHandlers },
  queues: ['notify', 'maintenance'],
  timing: { lockMs: 2_000, stalledCheckMs: 500, backoff: () => 500 },
})
process.send?.({ ready: true })

process.once('SIGTERM', async () => {
  const closed = workers.close()
  process.send?.({ stopping: true })
  await closed
  await pod.close()
  process.disconnect?.()
})
