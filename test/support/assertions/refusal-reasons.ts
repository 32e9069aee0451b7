import { Refusal } from '../../../src/domain/refusals.js'

/** The reason of a rejection; `done`: no rejection. */
export async function reasonOf(doing: Promise<unknown>): Promise<string> {
  try {
    await doing
    return 'done'
  } catch (error) {
    if (error instanceof Refusal) return error.reason
    throw error
  }
}

/** Of several that try the same at once: how often each end was reached. */
export async function countOutcomes(doing: readonly Promise<unknown>[]): Promise<Readonly<Record<string, number>>> {
  const reasons = await Promise.all(doing.map(reasonOf))
  return Object.fromEntries(
    [...new Set(reasons)].sort().map((reason) => [reason, reasons.filter((each) => each === reason).length]),
  )
}
