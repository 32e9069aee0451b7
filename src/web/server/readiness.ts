import { isDatabaseReachable } from '../../persistence/database/database.js'
import type { Services } from '../../services/services.js'
import type { Readiness } from './health.js'
import { HTTP_LIMITS } from './limits.js'

/** The web process is ready if the database answers. Without the queue it still serves clients, so its state is only reported. */
export function webReadiness(services: Services, isClosing: () => boolean): () => Promise<Readiness> {
  return async () => {
    if (isClosing()) return { ready: false, state: 'closing' }
    const [database, queue] = await Promise.all([
      isDatabaseReachable(services.db, HTTP_LIMITS.readinessTimeoutMs),
      isQueueReachable(services),
    ])
    return {
      ready: database,
      database: database ? 'ok' : 'unavailable',
      queue: queue ? 'ok' : 'unavailable',
      ...(services.config.isolated && { isolated: true }),
    }
  }
}

async function isQueueReachable(services: Services): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<false>((resolve) => {
    timer = setTimeout(resolve, HTTP_LIMITS.readinessTimeoutMs, false)
  })
  const answer = services.jobs.counts('inbound').then(
    () => true,
    () => false,
  )
  return Promise.race([answer, timeout]).finally(() => clearTimeout(timer))
}
