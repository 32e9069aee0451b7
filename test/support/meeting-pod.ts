import { pino } from 'pino'
import { readConfig } from '../../src/config.js'
import { type OpenPod, openPod } from '../../src/open-pod.js'
import type { Pod, RemotePods } from '../../src/pod.js'
import { cannedCrypto } from './canned-crypto.js'
import { createTestDatabase } from './database.js'

/** A pod with a real database and queue that meets others by the way it is given. */
export interface MeetingPod extends Pod {
  /** The same pod at another time of day. */
  at(time: Date): Pod
  /** How many rows each of these tables has. */
  rows(...tables: string[]): Promise<readonly number[]>
  close(): Promise<void>
}

/** The pod under test is `pod.example`, wherever others are. Without a way, it has the one of its settings. */
export async function openMeetingPod(
  options: { readonly remote?: RemotePods; readonly environment?: NodeJS.ProcessEnv } = {},
): Promise<MeetingPod> {
  const database = await createTestDatabase()
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    DATABASE_POOL: '8',
    SECRET_KEY: 'a key that is only good for tests',
    ...options.environment,
  })
  const log = pino({ level: process.env['TEST_LOG_LEVEL'] ?? 'silent' })
  const opened: OpenPod = await openPod(config, 'worker', { crypto: cannedCrypto(), log })
  const pod = options.remote === undefined ? opened : { ...opened, remote: options.remote }
  return {
    ...pod,
    at: (time) => ({ ...pod, now: () => time }),
    rows: (...tables) =>
      Promise.all(
        tables.map(async (table) => {
          const [{ count } = { count: 0 }] = await pod.db(table).count<{ count: number }[]>()
          return Number(count)
        }),
      ),
    async close() {
      await opened.close()
      await database.drop()
    },
  }
}
