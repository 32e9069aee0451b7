import { redisProgram } from '../support/queues/redis-server.js'
import { provide } from './debian-packages.js'

const PACKAGES = ['redis-server', 'redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1', 'libsystemd0']

/** Redis or Valkey. */
export async function provideRedis(): Promise<void> {
  if (redisProgram() === undefined) await provide('redis-server', PACKAGES)
}
