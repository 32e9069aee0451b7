const MIN_PAUSE_MS = 200
const MAX_PAUSE_MS = 5_000
/** A process that ran this long has started successfully; earlier crashes no longer count. */
const STEADY_AFTER_MS = 60_000
/** After one more crash in a row the process is given up. */
export const MAX_CRASHES_IN_A_ROW = 10

/** Returns a function that counts crashes in a row and returns the pause before the next start in milliseconds; `undefined`: give up. */
export function createRestartBackoff(): (ranFor: number) => number | undefined {
  let crashes = 0
  return (ranFor) => {
    crashes = ranFor > STEADY_AFTER_MS ? 1 : crashes + 1
    return crashes > MAX_CRASHES_IN_A_ROW ? undefined : Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** (crashes - 1))
  }
}
