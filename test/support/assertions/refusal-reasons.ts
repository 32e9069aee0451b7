import { Refusal } from '../../../src/domain/refusals.js'

/** The reason of a refusal, or `done`. Other errors are thrown. */
export async function reasonOf(action: Promise<unknown>): Promise<string> {
  try {
    await action
    return 'done'
  } catch (error) {
    if (error instanceof Refusal) return error.reason
    throw error
  }
}

/** Counts the outcomes of concurrent calls, by reason. */
export async function countOutcomes(actions: readonly Promise<unknown>[]): Promise<Readonly<Record<string, number>>> {
  const reasons = await Promise.all(actions.map(reasonOf))
  return Object.fromEntries(
    [...new Set(reasons)].sort().map((reason) => [reason, reasons.filter((each) => each === reason).length]),
  )
}
