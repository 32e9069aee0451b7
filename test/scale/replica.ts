import { type LocalClient, type PodUnderFaults, startAssailedPod } from '../faults/matrix/pod-under-faults.js'
import { callApi } from '../faults/matrix/senders.js'
import { startReplicatedDatabase } from '../support/databases/replicated-database.js'
import { freePort } from '../support/http/free-port.js'
import { type Meanwhile, sendBurst } from './burst.js'
import { type Outcome, type ScaleOptions, withAll } from './part.js'

const LISTS_AT_LEAST = 100

/** Results of the readers. */
interface Readings {
  lists: number
  withoutOwn: number
  failed: number
}

/**
 * A streaming replica behind DATABASE_READ_URL. While messages arrive, two clients write through one web process and read lists
 * through the other: each of their own posts must be in the lists at once. Then the replica is killed, without errors for clients.
 */
export async function scaleReplica({ messages }: ScaleOptions): Promise<Outcome> {
  return withAll(async (undo) => {
    const database = await startReplicatedDatabase()
    undo.push(() => database.stop())
    const ports = [await freePort(), await freePort()]
    const podUnderFaults = await startAssailedPod({
      store: 'PostgreSQL',
      settings: { DATABASE_URL: database.url, DATABASE_READ_URL: database.standby.url },
      hooked: (kind, index) => ({
        hooks: [],
        ...(kind === 'web' && { settings: { ADMIN_LISTEN: `127.0.0.1:${ports[index]}` } }),
      }),
    })
    undo.push(() => podUnderFaults.close())
    const { db } = podUnderFaults.pod
    await db.raw(`update access_tokens set created_at = created_at - interval '1 hour'`) // reads with new tokens go to the primary

    const alive: Readings = { lists: 0, withoutOwn: 0, failed: 0 }
    const dead: Readings = { lists: 0, withoutOwn: 0, failed: 0 }
    let counted = new Map<string, number>()
    const burst = await sendBurst(podUnderFaults, messages, async ({ untilAccepted, write }) => {
      const over = new AbortController()
      const reading = readAlong(podUnderFaults, write, alive, over.signal)
      await untilAccepted(0.6)
      over.abort()
      await reading
      counted = await listsIn(ports)
      await database.standby.kill()
      const rest = new AbortController()
      const readingOn = readAlong(podUnderFaults, write, dead, rest.signal)
      await untilAccepted(1)
      rest.abort()
      await readingOn
    })
    const read = counted.get('replica') ?? 0
    return {
      seen: [
        ...burst.seen,
        ['lists read by clients', alive.lists],
        ['… from the replica', read],
        ['… from the primary, which alone had what they wrote', counted.get('primary') ?? 0],
        ['… without an own post', alive.withoutOwn],
        ['lists read after the replica died', dead.lists],
        ['… not answered', dead.failed],
        ['… without an own post', dead.withoutOwn],
      ],
      wrongs: [
        ...burst.wrongs,
        ...(read === 0 ? ['no list was read from the replica'] : []),
        ...([alive, dead].some(({ withoutOwn }) => withoutOwn > 0)
          ? ['a list was without what its reader had written']
          : []),
        ...([alive, dead].some(({ failed }) => failed > 0) ? ['a list was not answered'] : []),
        ...(counted.get('failed') === 0 ? [] : [`${counted.get('failed')} lists could not be read from the replica`]),
      ],
    }
  })
}

/** Each client publishes a post and then reads lists, one of which must begin with that post. */
async function readAlong(
  podUnderFaults: PodUnderFaults,
  write: Meanwhile['write'],
  readings: Readings,
  over: AbortSignal,
): Promise<void> {
  const [one, other] = podUnderFaults.processes.web.map(({ base }) => base)
  async function live(client: LocalClient): Promise<void> {
    while (!over.aborted || readings.lists < LISTS_AT_LEAST) {
      const { guid } = await write(client, one)
      for (const path of [
        '/streams/main?per_page=100',
        '/streams/activity',
        '/notifications',
        '/aspects',
        '/contacts',
      ]) {
        const base = other ?? ''
        const where = path === '/contacts' ? `/users/${client.guid}/contacts` : path
        const { answer, body } = await callApi(base, client, 'GET', where)
        readings.lists += 1
        if (answer.status !== 200) readings.failed += 1
        const isMissing = path.startsWith('/streams/main') && guid !== undefined && !body.includes(guid)
        if (isMissing) readings.withoutOwn += 1
      }
    }
  }
  await Promise.all([live(podUnderFaults.alice), live(podUnderFaults.bob)])
}

/** From the metrics of both web processes. */
async function listsIn(ports: readonly number[]): Promise<Map<string, number>> {
  const sums = new Map<string, number>()
  for (const port of ports) {
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
    for (const [, database = '', lists] of text.matchAll(/^pod_lists_read_total\{database="(\w+)"\} (\d+)/gm)) {
      sums.set(database, (sums.get(database) ?? 0) + Number(lists))
    }
  }
  return sums
}
