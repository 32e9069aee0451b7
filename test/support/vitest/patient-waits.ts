import { vi } from 'vitest'

/** The default of one second is too short for a busy machine. A wait that succeeds takes no longer. */
const TIMEOUT_MS = 30_000

const { waitFor } = vi

/** Test files that share a process load this module again. */
if (waitFor.name !== 'waitPatiently') {
  Object.assign(vi, {
    waitFor: function waitPatiently(...[callback, options]: Parameters<typeof waitFor>) {
      return waitFor(callback, typeof options === 'number' ? options : { timeout: TIMEOUT_MS, ...options })
    },
  })
}
