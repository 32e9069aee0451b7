import { defineJob, retriedForHours } from '../../src/jobs/definitions.js'
import type { PodStores } from '../support/pods/queue-pod.js'

/** A job whose only effect is a row. */
export const noOpJob = defineJob<{ key: number; milliseconds?: number }>()('notify', 'no-op', retriedForHours)

/** Instructions for a process of the fault tests. */
export interface Instructions extends PodStores {
  /** Number of jobs at the end. */
  readonly jobs: number
}

export function readInstructions(): Instructions {
  const [text] = process.argv.slice(2)
  if (text === undefined) throw new Error('The first argument must contain the instructions.')
  return JSON.parse(text)
}
