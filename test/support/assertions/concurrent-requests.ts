import type { ApiAnswer } from '../pods/api-pod.js'

export const CONCURRENT_REQUESTS = 50

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
