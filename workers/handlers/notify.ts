import { publishAnnouncements } from '../../src/domain/notifications/announcements.js'
import type { announceJob, Handlers } from '../../src/jobs/definitions.js'
import type { JobContext } from '../../src/jobs/outbox/outbox.js'
import type { Pod } from '../../src/pod/pod.js'

export const notifyHandlers: Handlers<typeof announceJob, Pod, JobContext> = {
  announce: (pod, { outboxId }) => publishAnnouncements(pod, outboxId === undefined ? [] : [outboxId]),
}
