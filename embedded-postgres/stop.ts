import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster } from './cluster.js'
import { isPostmaster } from './postmaster.js'

/** Fast shutdown (drops connections, writes a checkpoint), then immediate (the next start replays the log), then kill. */
const STEPS = [
  { signal: 'SIGINT', limitMs: 15_000 },
  { signal: 'SIGQUIT', limitMs: 8_000 },
  { signal: 'SIGKILL', limitMs: 1_000 },
] as const
const POLL_MS = 5

export async function stopServer(pid: number, cluster: Cluster): Promise<void> {
  for (const { signal, limitMs } of STEPS) {
    if (!(await isPostmaster(pid, cluster))) return
    process.kill(pid, signal)
    const end = Date.now() + limitMs
    while (Date.now() < end && (await isPostmaster(pid, cluster))) await wait(POLL_MS)
  }
}
