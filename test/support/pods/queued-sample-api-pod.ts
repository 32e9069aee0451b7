import type { QueueBackend } from '../queues/queue-backends.js'
import { startTestRedis } from '../queues/redis-server.js'
import type { PodOptions } from './build-pod.js'
import { type SampleApiPod, startSampleApiPod } from './sample-api-pod.js'

/** The neighbourhood, with its queue in one of the stores there are. */
export async function openNeighbourhoodOn(
  { store }: QueueBackend,
  { environment, ...options }: PodOptions = {},
): Promise<SampleApiPod> {
  const redis = store === 'Redis' ? await startTestRedis() : undefined
  const api = await startSampleApiPod({ ...options, environment: { ...environment, REDIS_URL: redis?.url } })
  async function close(): Promise<void> {
    await api.close()
    await redis?.stop()
  }
  return { ...api, close, [Symbol.asyncDispose]: close }
}
