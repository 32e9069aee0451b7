import { type LocalClient, type PodUnderFaults, startPodUnderFaults } from '../faults/matrix/pod-under-faults.js'
import { callApi } from '../faults/matrix/senders.js'
import { startReplicatedDatabase } from '../support/databases/replicated-database.js'
import { freePort } from '../support/http/free-port.js'
import { type BurstProgress, sendBurst } from './burst.js'
import { type Outcome, type ScaleOptions, withCleanups } from './part.js'

const MIN_LISTS = 100

/** Results of the clients that read lists. */
interface Readings {
  lists: number
  /** Lists without a post that the client had published before. */
  withoutOwn: number
  failed: number
}

/**
 * A streaming replica behind DATABASE_READ_URL. While messages arrive, two clients write through one web process and read lists
 * through the other: each of their own posts must be in the lists at once. Then the replica is killed, without errors for clients.
 */
export async function scaleReplica({ messages }: ScaleOptions): Promise<Outcome> {
  return withCleanups(async (cleanups) => {
    const database = await startReplicatedDatabase()
    cleanups.push(() => database.stop())
    const ports = [await freePort(), await freePort()]
    const podUnderFaults = await startPodUnderFaults({
      store: 'PostgreSQL',
      settings: { DATABASE_URL: database.url, DATABASE_READ_URL: database.standby.url },
      hooksOf: (kind, index) => ({
        hooks: [],
        ...(kind === 'web' && { settings: { ADMIN_LISTEN: `127.0.0.1:${ports[index]}` } }),
      }),
    })
    cleanups.push(() => podUnderFaults.close())
    const { db } = podUnderFaults.pod
    await db.raw(`update access_tokens set created_at = created_at - interval '1 hour'`) // reads with new tokens go to the primary

    const beforeKill: Readings = { lists: 0, withoutOwn: 0, failed: 0 }
    const afterKill: Readings = { lists: 0, withoutOwn: 0, failed: 0 }
    let counted = new Map<string, number>()
    const burst = await sendBurst(podUnderFaults, messages, async ({ untilAccepted, write }) => {
      const over = new AbortController()
      const reading = publishAndRead(podUnderFaults, write, beforeKill, over.signal)
      await untilAccepted(0.6)
      over.abort()
      await reading
      counted = await countLists(ports)
      await database.standby.kill()
      const rest = new AbortController()
      const readingAfterKill = publishAndRead(podUnderFaults, write, afterKill, rest.signal)
      await untilAccepted(1)
      rest.abort()
      await readingAfterKill
    })
    const read = counted.get('replica') ?? 0
    return {
      results: [
        ...burst.results,
        ['lists read by clients', beforeKill.lists],
        ['… from the replica', read],
        ['… from the primary, because the replica lacked an own post', counted.get('primary') ?? 0],
        ['… without an own post', beforeKill.withoutOwn],
        ['lists read after the replica died', afterKill.lists],
        ['… failed', afterKill.failed],
        ['… without an own post', afterKill.withoutOwn],
      ],
      violations: [
        ...burst.violations,
        ...(read === 0 ? ['no list was read from the replica'] : []),
        ...([beforeKill, afterKill].some(({ withoutOwn }) => withoutOwn > 0)
          ? ['a list did not contain an own post']
          : []),
        ...([beforeKill, afterKill].some(({ failed }) => failed > 0) ? ['the request for a list failed'] : []),
        ...(counted.get('failed') === 0 ? [] : [`${counted.get('failed')} lists could not be read from the replica`]),
      ],
    }
  })
}

/** Each client publishes a post and then reads lists, one of which must begin with that post. */
async function publishAndRead(
  podUnderFaults: PodUnderFaults,
  write: BurstProgress['write'],
  readings: Readings,
  over: AbortSignal,
): Promise<void> {
  const [writeBase, readBase] = podUnderFaults.processes.web.map(({ base }) => base)
  async function runClient(client: LocalClient): Promise<void> {
    while (!over.aborted || readings.lists < MIN_LISTS) {
      const { guid } = await write(client, writeBase)
      for (const path of [
        '/streams/main?per_page=100',
        '/streams/activity',
        '/notifications',
        '/aspects',
        '/contacts',
      ]) {
        const base = readBase ?? ''
        const where = path === '/contacts' ? `/users/${client.guid}/contacts` : path
        const { response, body } = await callApi(base, client, { method: 'GET', path: where })
        readings.lists += 1
        if (response.status !== 200) readings.failed += 1
        const isMissing = path.startsWith('/streams/main') && guid !== undefined && !body.includes(guid)
        if (isMissing) readings.withoutOwn += 1
      }
    }
  }
  await Promise.all([runClient(podUnderFaults.alice), runClient(podUnderFaults.bob)])
}

/** Number of lists by database, from the metrics of both web processes. */
async function countLists(ports: readonly number[]): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  for (const port of ports) {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    for (const [, database = '', lists] of text.matchAll(/^pod_lists_read_total\{database="(\w+)"\} (\d+)/gm)) {
      sums.set(database, (sums.get(database) ?? 0) + Number(lists))
    }
  }
  return sums
}
