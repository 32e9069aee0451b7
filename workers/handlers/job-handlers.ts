import type { AnyJob, DataOf } from '../../src/jobs/definitions.js'
import type { JobContext } from '../../src/jobs/outbox/load-job.js'
import type { Services } from '../../src/services/services.js'

/** One handler for each of these jobs; a missing or an unknown one does not compile. */
export type JobHandlers<Jobs extends AnyJob> = {
  readonly [Job in Jobs as Job['name']]: (
    services: Services,
    work: JobContext & { readonly data: DataOf<Job> },
    deadline: AbortSignal,
  ) => Promise<void>
}
