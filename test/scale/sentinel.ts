import { setTimeout as pause } from 'node:timers/promises'
import { startPodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { until } from '../soak/until.js'
import { startWatchedRedis } from '../support/queues/redis-sentinel.js'
import type { OwnRedis } from '../support/queues/redis-server.js'
import { seconds, sendBurst } from './burst.js'
import { type Outcome, type ScaleOptions, withCleanups } from './part.js'
import { ensureRedis } from './redis-program.js'

const REPLICA_DELAY_MS = 500
const FAIL_OVER_WITHIN = 30_000

/**
 * A master with two replicas and three Sentinels. During a burst the replicas are delayed, the master is killed permanently, and
 * commands in transit to the replicas are lost with it. Runs once with acknowledgement by replicas, and once without.
 */
export async function scaleSentinel({ messages }: ScaleOptions): Promise<Outcome> {
  await ensureRedis()
  const withReplication = await runFailOver(messages, 1, ['--min-replicas-to-write', '1'])
  const withoutReplication = await runFailOver(messages, 0, [])
  return {
    results: [
      ...withReplication.results.map(([name, value]) => [`REDIS_REPLICAS=1: ${name}`, value] as const),
      ...withoutReplication.results
        .filter(([name]) => !name.includes('wrong'))
        .map(([name, value]) => [`REDIS_REPLICAS=0: ${name}`, value] as const),
      ['REDIS_REPLICAS=0: acknowledged and lost, at least', countLost(withoutReplication.violations)],
    ],
    violations: withReplication.violations,
  }
}

async function runFailOver(messages: number, replicas: number, settings: readonly string[]): Promise<Outcome> {
  return withCleanups(async (cleanups) => {
    const redis = await startWatchedRedis(2, ...settings)
    cleanups.push(() => redis.stop())
    const podUnderFaults = await startPodUnderFaults({
      store: 'PostgreSQL',
      settings: { REDIS_URL: redis.url, REDIS_REPLICAS: `${replicas}` },
    })
    cleanups.push(() => podUnderFaults.close())
    const [master, ...others] = redis.servers
    let [killedAt, replacedAt] = [0, 0]
    const { results, violations } = await sendBurst(podUnderFaults, messages, async ({ untilAccepted }) => {
      await untilAccepted(0.3)
      // Jobs that workers have started are stored; only waiting jobs can be lost.
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
      for (const other of others) other.signal('SIGSTOP')
      await pause(REPLICA_DELAY_MS)
      await master?.kill()
      killedAt = Date.now()
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
      for (const other of others) await other.crash()
      await until('another server is the master', FAIL_OVER_WITHIN, async () =>
        isOtherServer(master, await redis.masterPort()),
      )
      replacedAt = Date.now()
      await master?.start() // becomes a replica when the Sentinels have discovered it
    })
    return {
      results: [['seconds until another server was the master', seconds(replacedAt - killedAt)], ...results],
      violations,
    }
  })
}

function isOtherServer(master: OwnRedis | undefined, port: number): boolean {
  return Number.isInteger(port) && port !== Number(new URL(master?.url ?? '').port)
}

/** Number of missing messages: those that the violations list, and the number of the others. */
function countLost(violations: readonly string[]): number {
  const missing = violations.filter((violation) => /^(posts|comments|likes): .* 0 times, not 1/.test(violation)).length
  const more = violations.flatMap((violation) => /^(?:posts|comments|likes): and (\d+) more/.exec(violation)?.[1] ?? [])
  return more.reduce((sum, count) => sum + Number(count), missing)
}
