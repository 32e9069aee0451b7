import { type CheckResult, checkPassed, checkWarning } from '../../domain/operations/check-result.js'
import { readDatabaseTime } from '../../persistence/database/periodic-runs.js'
import { listProcesses } from '../../persistence/operations/processes.js'
import type { Services } from '../../services/services.js'

const WRONG_SECONDS = 5

/** Compares the clock of this machine with the clocks of the database and of other pods. Processes measure the latter. */
export async function checkClock({ db }: Pick<Services, 'db'>): Promise<readonly CheckResult[]> {
  const began = Date.now()
  const time = await readDatabaseTime(db)
  const offset = (time.getTime() - (began + Date.now()) / 2) / 1_000
  const ofDatabase =
    Math.abs(offset) > WRONG_SECONDS
      ? checkWarning(
          'clock',
          `The clock of the database differs by ${Math.round(offset)} seconds: synchronise both machines.`,
        )
      : checkPassed('clock', `The clock of the database differs by ${offset.toFixed(1)} seconds.`)
  return [ofDatabase, ...(await checkAgainstPods(db))]
}

async function checkAgainstPods(db: Services['db']): Promise<readonly CheckResult[]> {
  const clocks = (await listProcesses(db)).flatMap(({ facts }) => facts.podClock ?? [])
  const [best] = clocks.sort((one, other) => other.answers - one.answers)
  if (best === undefined) return []
  const seconds = Math.round(best.offset)
  return [
    Math.abs(best.offset) > WRONG_SECONDS
      ? checkWarning(
          'clock of pods',
          `The clocks of other pods differ by ${seconds} seconds: check NTP on this machine.`,
        )
      : checkPassed('clock of pods', `The clock agrees with the last ${best.answers} answers of other pods.`),
  ]
}
