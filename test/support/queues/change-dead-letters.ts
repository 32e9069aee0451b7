import {
  changeDeadLetters,
  type DeadLetterWork,
  findDeadLetterRange,
} from '../../../src/jobs/dead-letters/change-dead-letters.js'
import type { DeadLetterDependencies, DeadLetterFilter } from '../../../src/jobs/dead-letters/dead-letter.js'

/** Runs all dead letters that match again; returns their number. */
export function replayDeadLetters(pod: DeadLetterDependencies, filter: DeadLetterFilter = {}): Promise<number> {
  return changeAll(pod, 'replay', filter)
}

/** Deletes all dead letters that match; returns their number. */
export function dropDeadLetters(pod: DeadLetterDependencies, filter: DeadLetterFilter = {}): Promise<number> {
  return changeAll(pod, 'drop', filter)
}

async function changeAll(pod: DeadLetterDependencies, work: DeadLetterWork, filter: DeadLetterFilter): Promise<number> {
  let count = 0
  let range = await findDeadLetterRange(pod, filter)
  while (range !== undefined) {
    const choice = { filter, range }
    const chunk = await pod.db.transaction((transaction) => changeDeadLetters(pod, transaction, work, choice))
    count += chunk.changed
    range = chunk.rest
  }
  return count
}
