/** The processes of a pod. */
export const PROCESS_LIMITS = {
  /** From the signal to the exit: requests, jobs, pools, threads. Supervisors must wait a little longer. */
  closeMs: 30_000,
} as const
