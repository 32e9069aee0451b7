import { isDatabaseReachable } from '../../persistence/database/database.js'
import type { Pod } from '../../pod/pod.js'
import type { Readiness } from './health.js'
import { HTTP_LIMITS } from './limits.js'

/** The web process is ready if the database answers. Without the queue it still serves clients, so its state is only reported. */
export function webReadiness(pod: Pod, isClosing: () => boolean): () => Promise<Readiness> {
  return async () => {
    if (isClosing()) return { ready: false, state: 'closing' }
    const [database, queue] = await Promise.all([
      isDatabaseReachable(pod.db, HTTP_LIMITS.readinessTimeoutMs),
      queueReachable(pod),
    ])
    return {
      ready: database,
      database: database ? 'ok' : 'away',
      queue: queue ? 'ok' : 'away',
      ...(pod.config.isolated && { isolated: true }),
    }
  }
}

async function queueReachable(pod: Pod): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, HTTP_LIMITS.readinessTimeoutMs, false)
  })
  const answer = pod.jobs.counts('inbound').then(
    () => true,
    () => false,
  )
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}
