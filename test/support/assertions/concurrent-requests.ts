import type { ApiAnswer } from '../pods/api-pod.js'

export const AT_ONCE = 50

/** Sends many concurrent requests, and counts the responses by status. */
export async function statusesOf(
  call: (number: number) => Promise<ApiAnswer>,
  times = AT_ONCE,
): Promise<Record<number, number>> {
  const answers = await Promise.all(Array.from({ length: times }, (_, number) => call(number)))
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}
