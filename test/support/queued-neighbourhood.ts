import { type Neighbourhood, openNeighbourhood } from './neighbourhood.js'
import type { QueueBackend } from './queue-backends.js'
import { startTestRedis } from './redis-server.js'
import type { TestPodOptions } from './test-pod.js'

/** The neighbourhood, with its queue in one of the stores there are. */
export async function openNeighbourhoodOn(
  { store }: QueueBackend,
  { environment, ...options }: TestPodOptions = {},
): Promise<Neighbourhood> {
  const redis = store === 'Redis' ? await startTestRedis() : undefined
  const api = await openNeighbourhood({ ...options, environment: { ...environment, REDIS_URL: redis?.url } })
  async function close(): Promise<void> {
    await api.close()
    await redis?.stop()
  }
  return { ...api, close, [Symbol.asyncDispose]: close }
}
