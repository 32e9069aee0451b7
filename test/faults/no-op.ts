import { defineJob, patient } from '../../src/jobs/definitions.js'
import type { Stores } from '../support/queue-pod.js'

/** Its only effect is a row. */
export const noOpJob = defineJob<{ key: number; milliseconds?: number }>()('notify', 'no-op', patient)

/** What the processes of the fault tests are told. */
export interface Instructions extends Stores {
  /** How many jobs there are in the end. */
  readonly jobs: number
}

export function readInstructions(): Instructions {
  const [text] = process.argv.slice(2)
  if (text === undefined) throw new Error('the test tells this process what to do by its first argument')
  return JSON.parse(text)
}
