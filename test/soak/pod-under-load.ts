import { pino } from 'pino'
import { readConfig } from '../../src/config/config.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { buildApp } from '../../src/web/server/app.js'
import { type CrashingDatabase, startCrashingDatabase } from '../support/databases/crashing-database.js'
import { createTables } from '../support/databases/create-tables.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { startTestRedis, type TestRedis } from '../support/queues/redis-server.js'

/** The web part of a pod in this process, on its own stores that can be killed; its workers are separate processes. */
export interface PodUnderLoad {
  readonly pod: OpenServices
  readonly database: CrashingDatabase
  readonly redis: TestRedis | undefined
  /** Environment for a worker process on the same stores. */
  readonly environment: NodeJS.ProcessEnv
  /** Posts a body and returns the status of the response. */
  post(path: string, body: string): Promise<number>
  close(): Promise<void>
}

export async function startPodUnderLoad(store: 'Redis' | 'PostgreSQL'): Promise<PodUnderLoad> {
  const database = await startCrashingDatabase()
  const redis = store === 'Redis' ? await startTestRedis('--appendfsync', 'always') : undefined
  const environment: NodeJS.ProcessEnv = {
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    SECRET_KEY: 'a key that is only good for tests',
    ...(redis && { REDIS_URL: redis.url }),
  }
  await createTables(database.url)
  const log = pino({ level: 'silent' })
  const pod = await openServices(readConfig(environment), 'web', { crypto: fixedKeyCrypto(), log })
  const app = await buildApp(pod)
  return {
    pod,
    database,
    redis,
    environment,
    async post(url, payload) {
      const { statusCode } = await app.inject({ method: 'POST', url, payload })
      return statusCode
    },
    async close() {
      await app.close()
      await pod.close()
      await redis?.stop()
      await database.stop()
    },
  }
}
