/** One thing that is run for real: how it went, in lines for a person. */
export interface Outcome {
  /** What was seen, in the order of the table. */
  readonly seen: readonly (readonly [name: string, value: string | number])[]
  /** Everything that is not as it must be, in sentences. */
  readonly wrongs: readonly string[]
}

/** Why a part cannot run on this machine; that is no failure. */
export class NotHere extends Error {
  override name = 'NotHere'
}

export interface ScaleOptions {
  readonly messages: number
  readonly rounds: number
}

/** Starts all it needs in folders and on ports of its own, and ends it. */
export type Part = (options: ScaleOptions) => Promise<Outcome>

/** Started resources, always ended in reverse order. */
export async function withAll<Result>(run: (undo: (() => Promise<unknown>)[]) => Promise<Result>): Promise<Result> {
  const undo: (() => Promise<unknown>)[] = []
  try {
    return await run(undo)
  } finally {
    for (const step of undo.reverse()) await step()
  }
}
