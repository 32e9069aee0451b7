/** The outcome of one part, as lines of text. */
export interface Outcome {
  /** The results, in the order of the table. */
  readonly seen: readonly (readonly [name: string, value: string | number])[]
  /** All violations, as sentences. */
  readonly wrongs: readonly string[]
}

/** The reason why a part cannot run on this machine; this is not a failure. */
export class NotHere extends Error {
  override name = 'NotHere'
}

export interface ScaleOptions {
  readonly messages: number
  readonly rounds: number
}

/** Starts all required processes in its own folders and on its own ports, and ends them. */
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
