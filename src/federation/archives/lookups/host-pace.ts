import { setTimeout as pause } from 'node:timers/promises'

/** Spaces requests to each host. */
export function openHostPace(everyMs: number): { wait(host: string, signal: AbortSignal): Promise<void> } {
  const nextAt = new Map<string, number>()
  return {
    async wait(host, signal) {
      const now = performance.now()
      const at = Math.max(now, nextAt.get(host) ?? 0)
      nextAt.set(host, at + everyMs)
      if (at > now) await pause(at - now, undefined, { signal })
    },
  }
}
