/** Files of the operator. */
export const POD_LIMITS = {
  /** The terms that people accept when they sign up. */
  termsBytes: 256 * 1024,
} as const

/** The processes of a pod. */
export const PROCESS_LIMITS = {
  /** Time from the signal to the exit: requests, jobs, pools, threads. Supervisors must wait a little longer. */
  closeMs: 30_000,
} as const
