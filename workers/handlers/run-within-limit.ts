import { ProtocolError, type ProtocolFault } from '../../src/protocol/errors.js'

/** Counts the running jobs of a host, and refuses a job over the limit. */
export async function runWithinLimit(
  running: Map<string, number>,
  { limit, host, fault }: { readonly limit: number; readonly host: string; readonly fault: ProtocolFault },
  work: () => Promise<unknown>,
): Promise<void> {
  const count = running.get(host) ?? 0
  if (count >= limit) throw new ProtocolError(fault, `too many requests to ${host} at the moment`)
  running.set(host, count + 1)
  try {
    await work()
  } finally {
    const remainingRuns = (running.get(host) ?? 1) - 1
    if (remainingRuns > 0) running.set(host, remainingRuns)
    else running.delete(host)
  }
}
