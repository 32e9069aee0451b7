import { maintenanceHandlers } from '../../../workers/handlers/maintenance.js'
import { notifyHandlers } from '../../../workers/handlers/notify.js'
import { startWorkers } from '../../../workers/start-workers.js'
import { openQueuePod } from '../../support/pods/queue-pod.js'
import { readInstructions } from '../no-op.js'

startWorkers(await openQueuePod(readInstructions()), {
  handlers: { notify: notifyHandlers, maintenance: maintenanceHandlers },
  queues: ['notify', 'maintenance'],
  timing: { lockMs: 2_000, stalledCheckMs: 500, backoff: () => 100 },
})
process.send?.({ ready: true })
