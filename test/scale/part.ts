/** The outcome of one part, as lines of text. */
export interface Outcome {
  /** The results, in the order of the table. */
  readonly results: readonly (readonly [name: string, value: string | number])[]
  /** All violations, as sentences. */
  readonly violations: readonly string[]
}

/** The reason why a part cannot run on this machine. This is no failure. */
export class NotAvailable extends Error {
  override name = 'NotAvailable'
}

export interface ScaleOptions {
  readonly messages: number
  readonly rounds: number
}

/** Starts all required processes in separate folders and on free ports, and ends them. */
export type Part = (options: ScaleOptions) => Promise<Outcome>

/** Runs a function, and then its cleanups in reverse order. */
export async function withCleanups<Result>(
  run: (cleanups: (() => Promise<unknown>)[]) => Promise<Result>,
): Promise<Result> {
  const cleanups: (() => Promise<unknown>)[] = []
  try {
    return await run(cleanups)
  } finally {
    for (const step of cleanups.reverse()) await step()
  }
}
