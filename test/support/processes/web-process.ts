import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { OpenPod } from '../../../src/pod/open-pod.js'
import { startPodProcess } from './pod-process.js'

/** A web process of its own, on the stores of a pod under test. */
export interface WebProcess {
  /** `http://127.0.0.1:40123` */
  readonly base: string
  /** kill -9: it can finish nothing. */
  kill(): Promise<void>
}

export async function startWebProcess({ config }: Pick<OpenPod, 'config'>): Promise<WebProcess> {
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
