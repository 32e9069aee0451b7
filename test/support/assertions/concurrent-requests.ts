import type { ApiAnswer } from '../pods/api-pod.js'

/** As many as the pods of these tests have connections: on a slow machine, a request that waits for one gets a 503. */
export const CONCURRENT_REQUESTS = 20

/** Sends many concurrent requests, and counts the responses by status. */
export async function countStatuses(
  call: (number: number) => Promise<ApiAnswer>,
  times = CONCURRENT_REQUESTS,
): Promise<Record<number, number>> {
  const answers = await Promise.all(Array.from({ length: times }, (_, number) => call(number)))
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
