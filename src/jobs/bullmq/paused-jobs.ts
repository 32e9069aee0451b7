import type { JobType } from 'bullmq'

/** How both back ends count the waiting jobs of a paused queue. The types of the library leave it out. */
export const PAUSED_JOBS = 'paused' as JobType
