import type { JobsOptions } from 'bullmq'
import * as definitions from '../definitions.js'
import { type AnyJob, probeJob, retriedForHours } from '../definitions.js'
import { versionOfDefinition } from '../job-version.js'
import { QUEUES } from './queue-names.js'

/** Every job that is added to a queue: those that definitions.ts exports, and the probe of each queue. */
export const JOB_DEFINITIONS: readonly AnyJob[] = [
  ...Object.values<unknown>(definitions).filter(isJob),
  ...QUEUES.map(probeJob),
]

function isJob(exported: unknown): exported is AnyJob {
  return typeof exported === 'object' && exported !== null && 'queue' in exported && 'name' in exported
}

/** Additional options of one job. */
interface OwnOptions {
  /** Milliseconds until the job may begin. */
  readonly delay?: number | undefined
  /** Replaces the priority of the definition. Jobs with a larger number run later. */
  readonly priority?: number | undefined
  readonly deduplication?: JobsOptions['deduplication']
}

/** Returns the options with which a job is added to its queue, whichever way it is added. */
export type OptionsOf = (job: Pick<AnyJob, 'queue' | 'name'>, own?: OwnOptions) => JobsOptions

/** Definitions given here replace those of the program with the same queue and name; tests have jobs of their own. */
export function openJobOptions(others: readonly AnyJob[] = []): OptionsOf {
  const optionsByKey = new Map([...JOB_DEFINITIONS, ...others].map((job) => [keyOf(job), job.options]))
  return (job, own = {}) => {
    // An outbox row of a newer version may have an unknown name.
    const options = optionsByKey.get(keyOf(job)) ?? retriedForHours
    const set = Object.entries(own).filter(([, value]) => value !== undefined)
    return { ...options, ...Object.fromEntries(set) }
  }
}

/** Returns the version of a job that this program knows. */
export type VersionOf = (job: Pick<AnyJob, 'queue' | 'name'>) => number

/** Definitions given here replace those of the program, as for `openJobOptions`. */
export function openJobVersions(others: readonly AnyJob[] = []): VersionOf {
  const definitionsByKey = new Map([...JOB_DEFINITIONS, ...others].map((job) => [keyOf(job), job]))
  return (job) => versionOfDefinition(definitionsByKey.get(keyOf(job)) ?? {})
}

function keyOf({ queue, name }: Pick<AnyJob, 'queue' | 'name'>): string {
  return `${queue} ${name}`
}
