import { redisProgram } from '../support/queues/redis-server.js'
import { ensureProgram } from './debian-packages.js'

const PACKAGES = ['redis-server', 'redis-tools', 'libjemalloc2', 'liblzf1', 'libatomic1', 'libsystemd0']

/** Ensures that Redis or Valkey is on the PATH. */
export async function ensureRedis(): Promise<void> {
  if (redisProgram() === undefined) await ensureProgram('redis-server', PACKAGES)
}
