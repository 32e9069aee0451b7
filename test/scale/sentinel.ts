import { setTimeout as pause } from 'node:timers/promises'
import { startAssailedPod } from '../faults/matrix/pod-under-faults.js'
import { until } from '../soak/until.js'
import { startWatchedRedis } from '../support/queues/redis-sentinel.js'
import type { OwnRedis } from '../support/queues/redis-server.js'
import { seconds, sendBurst } from './burst.js'
import { type Outcome, type ScaleOptions, withAll } from './part.js'
import { provideRedis } from './redis-program.js'

const HELD_UP = 500
const FAIL_OVER_WITHIN = 30_000

/**
 * A master with two replicas and three Sentinels. During a burst the replicas are delayed, the master is killed permanently, and
 * commands in transit to the replicas are lost with it. Runs once with acknowledgement by replicas, and once without.
 */
export async function scaleSentinel({ messages }: ScaleOptions): Promise<Outcome> {
  await provideRedis()
  const safe = await failOver(messages, 1, ['--min-replicas-to-write', '1'])
  const careless = await failOver(messages, 0, [])
  return {
    seen: [
      ...safe.seen.map(([name, value]) => [`REDIS_REPLICAS=1: ${name}`, value] as const),
      ...careless.seen
        .filter(([name]) => !name.includes('wrong'))
        .map(([name, value]) => [`REDIS_REPLICAS=0: ${name}`, value] as const),
      ['REDIS_REPLICAS=0: acknowledged and lost, at least', lostIn(careless.wrongs)],
    ],
    wrongs: safe.wrongs,
  }
}

async function failOver(messages: number, replicas: number, settings: readonly string[]): Promise<Outcome> {
  return withAll(async (undo) => {
    const redis = await startWatchedRedis(2, ...settings)
    undo.push(() => redis.stop())
    const podUnderFaults = await startAssailedPod({
      store: 'PostgreSQL',
      settings: { REDIS_URL: redis.url, REDIS_REPLICAS: `${replicas}` },
    })
    undo.push(() => podUnderFaults.close())
    const [master, ...others] = redis.servers
    let [killedAt, replacedAt] = [0, 0]
    const { seen, wrongs } = await sendBurst(podUnderFaults, messages, async ({ untilAccepted }) => {
      await untilAccepted(0.3)
      // Jobs that workers have started are stored; only waiting jobs can be lost.
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
      for (const other of others) other.signal('SIGSTOP')
      await pause(HELD_UP)
      await master?.kill()
      killedAt = Date.now()
      for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
      for (const other of others) await other.crash()
      await until('there is another master', FAIL_OVER_WITHIN, async () => isAnother(master, await redis.masterPort()))
      replacedAt = Date.now()
      await master?.start() // becomes a replica when the Sentinels have discovered it
    })
    return { seen: [['seconds until there was another master', seconds(replacedAt - killedAt)], ...seen], wrongs }
  })
}

function isAnother(master: OwnRedis | undefined, port: number): boolean {
  return Number.isInteger(port) && port !== Number(new URL(master?.url ?? '').port)
}

/** Lists the first ten missing messages, and the number of the others. */
function lostIn(wrongs: readonly string[]): number {
  const missing = wrongs.filter((wrong) => /^(posts|comments|likes): .* 0 times, not 1/.test(wrong)).length
  const more = wrongs.flatMap((wrong) => /^(?:posts|comments|likes): and (\d+) more/.exec(wrong)?.[1] ?? [])
  return more.reduce((sum, count) => sum + Number(count), missing)
}
