import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../../../src/config/config.js'
import { DIASPORA_PEPPER } from '../../../src/domain/accounts/passwords/bcrypt-password.js'
import { createSecrets, readSecretKey } from '../../../src/services/secrets.js'
import type { TakeOverOptions, TakeOverTarget } from '../../../src/take-over/take-over.js'
import { openEmptyDatabase } from '../databases/test-database.js'

/** An empty database that takes over a pod, with a folder for its files. */
export interface TestTarget {
  readonly target: TakeOverTarget
  readonly options: TakeOverOptions
  /** The settings of the pod after the switch. */
  readonly environment: Readonly<Record<string, string>>
  readonly folder: string
  rowsOf(select: string, values?: readonly (string | number)[]): Promise<readonly Record<string, unknown>[]>
  close(): Promise<void>
}

/** `from` is the URL of the old database, `url` the address of both pods. */
export async function openTestTarget(from: string, url: string): Promise<TestTarget> {
  const folder = await mkdtemp(join(tmpdir(), 'take-over-'))
  const database = await openEmptyDatabase()
  const environment = {
    POD_URL: url,
    DATABASE_URL: database.url,
    SECRET_KEY: 'a key that is only good for tests',
    UPLOADS_DIR: join(folder, 'uploads'),
    DATA_DIR: join(folder, 'data'),
  }
  const config = readConfig(environment)
  const secrets = createSecrets(await readSecretKey(config))
  return {
    target: { db: database.db, url: database.url, config, secrets },
    options: {
      from,
      uploads: undefined,
      uploadsMode: 'link',
      oidcKey: undefined,
      pepper: DIASPORA_PEPPER,
      rate: undefined,
      shouldVerifyAllSignatures: true,
      shouldLockBrokenKeys: false,
      sidekiq: undefined,
      mayLoseJobs: true,
      signal: new AbortController().signal,
      report: () => undefined,
    },
    environment,
    folder,
    rowsOf: async (select, values = []) => (await database.db.raw(select, [...values])).rows,
    async close() {
      await database.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
