import type { ApiResponse } from '../pods/api-pod.js'

/** Number of database connections of these pods. On a slow machine, a request that waits for a connection gets 503. */
export const CONCURRENT_REQUESTS = 20

/** Sends many concurrent requests, and counts the responses by status. */
export async function countStatuses(
  call: (number: number) => Promise<ApiResponse>,
  times = CONCURRENT_REQUESTS,
): Promise<Record<number, number>> {
  const responses = await Promise.all(Array.from({ length: times }, (_, number) => call(number)))
  const counts: Record<number, number> = {}
  for (const { status } of responses) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
