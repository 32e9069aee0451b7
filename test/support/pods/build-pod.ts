import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { readConfig } from '../../../src/config/config.js'
import { type OpenPod, openPod } from '../../../src/pod/open-pod.js'
import { type AppOptions, buildApp } from '../../../src/web/server/app.js'
import { HTTP_LIMITS } from '../../../src/web/server/limits.js'
import { testLog } from '../assertions/test-log.js'
import { createTestDatabase } from '../databases/test-database.js'
import { peopleOf, type TestPerson } from '../people/local-users.js'
import { fixedKeyCrypto } from './fixed-key-crypto.js'

/** A whole web process without its port: real database, real queue, canned keys. */
export interface TestPod extends AsyncDisposable {
  readonly pod: OpenPod
  readonly app: FastifyInstance
  readonly inject: FastifyInstance['inject']
  /** Creates the people, once; a second call returns the same people. */
  people<Name extends string>(...names: Name[]): Promise<Record<Name, TestPerson>>
  close(): Promise<void>
}

export interface PodOptions extends AppOptions {
  readonly environment?: NodeJS.ProcessEnv
  readonly log?: Logger
  /** Hands in a pod with one piece replaced. */
  readonly change?: (pod: OpenPod) => OpenPod
}

/** Without the limit on event loop delay, so that the load of the machine causes no rejections. Tests of it set their own. */
export const NO_EVENT_LOOP_LIMIT = { ...HTTP_LIMITS, eventLoopDelayMs: Number.POSITIVE_INFINITY }

export async function buildPod({ environment, log, change, ...options }: PodOptions = {}): Promise<TestPod> {
  const database = await createTestDatabase()
  const config = readConfig({
    POD_URL: 'https://pod.example',
    POD_NAME: 'The pod under test',
    DATABASE_URL: database.url,
    DATABASE_POOL: '4',
    SECRET_KEY: 'a key that is only good for tests',
    ...environment,
  })
  const opened = await openPod(config, 'web', { crypto: fixedKeyCrypto(), log: log ?? testLog() })
  const pod = change ? change(opened) : opened
  const app = await buildApp(pod, { limits: NO_EVENT_LOOP_LIMIT, ...options })

  async function close(): Promise<void> {
    await app.close()
    await opened.close()
    await database.drop()
  }

  return {
    pod,
    app,
    inject: app.inject.bind(app),
    people: peopleOf(pod, app),
    close,
    [Symbol.asyncDispose]: close,
  }
}
