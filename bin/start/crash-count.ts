const SHORTEST_PAUSE = 200
const LONGEST_PAUSE = 5_000
/** A process that ran this long has started successfully; earlier crashes no longer count. */
const STEADY_AFTER = 60_000
const IN_A_ROW = 10

/** Milliseconds before the next start, longer with each crash in a row; `undefined`: give up. */
export function countCrashes(): (ranFor: number) => number | undefined {
  let crashes = 0
  return (ranFor) => {
    crashes = ranFor > STEADY_AFTER ? 1 : crashes + 1
    return crashes > IN_A_ROW ? undefined : Math.min(LONGEST_PAUSE, SHORTEST_PAUSE * 2 ** (crashes - 1))
  }
}
