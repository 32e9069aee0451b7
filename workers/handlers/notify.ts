import { publishLiveEvents } from '../../src/domain/notifications/enqueue-live-events.js'
import type { liveEventJob } from '../../src/jobs/definitions.js'
import type { JobHandlers } from './job-handlers.js'

export const notifyHandlers: JobHandlers<typeof liveEventJob> = {
  announce: (services, { outboxId }) => publishLiveEvents(services, outboxId === undefined ? [] : [outboxId]),
}
