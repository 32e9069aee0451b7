import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenServices } from '../../../src/services/open-services.js'
import { startPodProcess } from './pod-process.js'

/** A separate web process on the database and queue of a pod under test. */
export interface WebProcess {
  /** `http://127.0.0.1:40123` */
  readonly base: string
  /** Sends SIGKILL, and resolves when the process has ended. */
  kill(): Promise<void>
}

export async function startWebProcess({ config }: Pick<OpenServices, 'config'>): Promise<WebProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'pod-web-'))
  const settings = {
    POD_URL: config.url,
    DATABASE_URL: config.databaseUrl,
    SECRET_KEY: config.secretKey,
    ...(config.redisUrl !== undefined && { REDIS_URL: config.redisUrl }),
    LOG_LEVEL: 'silent',
  }
  const { base, kill } = await startPodProcess('web', settings, folder)
  return {
    base,
    async kill() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
