import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Person } from '../../../src/persistence/models/person.js'
import type { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { until } from '../../soak/until.js'
import { addRemotePod } from '../../support/federation/recording-pod.js'
import { type ScriptedServer, serveHttp, serveRaw } from '../../support/http/scripted-server.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { publishWithRetries } from './senders.js'
import { store } from './this-run.js'

/** Longer than the time limit of an HTTP exchange. */
const ATTEMPTED_WITHIN_MS = 50_000
/** Maximum time for the healthy pod. Shorter than the timeout of a silent pod. */
const HEALTHY_WITHIN_MS = 20_000
const DELIVERED = 'delivered'
/** Maximum random part of a retry delay, in seconds. */
const JITTER = 60
const MAX_ATTEMPTS = 10

/** Time of the next attempt of a delivery. */
interface Attempt {
  readonly id: number
  readonly seconds: string
}

let podUnderFaults: PodUnderFaults
const servers: ScriptedServer[] = []
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
})
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()))
  await podUnderFaults?.close()
})

/** Adds a pod behind this server, with a follower of bob. */
async function addFollowingPod(server: ScriptedServer, changes: Partial<RemotePod> = {}): Promise<number> {
  servers.push(server)
  const { pod, fakePods, bob } = podUnderFaults
  const host = `localhost:${server.port}`
  const { id } = await addRemotePod(pod, host, changes)
  const { guid, address, publicKey } = fakePods.person(`fan@${host}`)
  const person = await pod.db.transaction((transaction) =>
    Person.insertWithProfile(transaction, { guid, address, publicKey, podId: id }),
  )
  await pod.db('contacts').insert({ userId: bob.userId, personId: person.id, sharing: true, receiving: false })
  return id
}

/** The outcome of the delivery to each of these pods. */
async function outcomesOf(ids: ReadonlyMap<string | number, number>): Promise<Readonly<Record<string, unknown>>> {
  const rows = await podUnderFaults.pod
    .db('pods')
    .leftJoin('deliveries', 'deliveries.podId', 'pods.id')
    .whereIn('pods.id', [...ids.values()])
    .select('pods.id', 'attempts', 'lastFault', 'lastStatus', 'failures')
  const byId = new Map(rows.map((row) => [row.id, row]))
  return Object.fromEntries(
    [...ids].map(([name, id]) => {
      const row = byId.get(id)
      if (row === undefined || row.attempts === null) return [name, DELIVERED]
      return [name, `${row.lastFault} ${row.failures === 0 ? 'for this delivery' : 'for the pod'}`]
    }),
  )
}

/** Resolves when each delivery was attempted. */
async function untilAttempted(ids: ReadonlyMap<string | number, number>): Promise<void> {
  await until('all deliveries were attempted', ATTEMPTED_WITHIN_MS, async () => {
    const unattempted = await podUnderFaults.pod
      .db('deliveries')
      .whereIn('podId', [...ids.values()])
      .whereNull('lastFault')
    const queued = await podUnderFaults.pod.db('outbox').where({ name: 'dispatch' })
    return unattempted.length + queued.length === 0
  })
}

it('F18: other pods fail, each in a different way', async () => {
  const closed = await serveRaw(() => {})
  const ids = new Map([
    ['refuses', await addFollowingPod(closed)],
    ['is silent', await addFollowingPod(await serveRaw(() => {}))],
    ['resets', await addFollowingPod(await serveRaw((socket) => socket.resetAndDestroy()))],
    ['hangs up', await addFollowingPod(await serveRaw((socket) => void socket.once('data', () => socket.destroy())))],
    ['sends garbage', await addFollowingPod(await serveRaw((socket) => void socket.end('Good day to you\r\n\r\n')))],
    ['has no TLS', await addFollowingPod(await serveHttp((_, response) => response.end()), { ssl: true })],
    [
      'responds late',
      await addFollowingPod(
        await serveHttp(async (request, response) => {
          request.resume()
          await pause(10_000)
          response.writeHead(202).end()
        }),
      ),
    ],
    [
      'never ends its response',
      await addFollowingPod(
        await serveHttp((request, response) => {
          request.resume()
          response.writeHead(200)
          const timer = setInterval(() => response.write(' '), 500)
          response.on('close', () => clearInterval(timer))
        }),
      ),
    ],
    [
      'is healthy',
      await addFollowingPod(
        await serveHttp((request, response) => void request.resume().on('end', () => response.writeHead(202).end())),
      ),
    ],
  ])
  await closed.close()

  expect((await publishWithRetries(podUnderFaults, podUnderFaults.bob)).status).toBe(200)
  await until('the healthy pod has the post', HEALTHY_WITHIN_MS, async () => {
    const messages = await podUnderFaults.pod.db('outboundMessages').where({ record: 'post' })
    return messages.length > 0 && (await outcomesOf(ids))['is healthy'] === DELIVERED
  })
  await untilAttempted(ids)

  expect(await outcomesOf(ids)).toEqual({
    refuses: 'net for the pod',
    'is silent': 'timeout for the pod',
    resets: 'net for the pod',
    'hangs up': 'net for the pod',
    'sends garbage': 'bad_answer for the pod',
    'has no TLS': 'ssl for the pod',
    'responds late': DELIVERED,
    'never ends its response': DELIVERED,
    'is healthy': DELIVERED,
  })
  await podUnderFaults.pod.db('contacts').where({ userId: podUnderFaults.bob.userId }).delete()
  await podUnderFaults.pod
    .db('deliveries')
    .whereIn('podId', [...ids.values()])
    .delete() // each attempt at the silent pod takes long
})

it('F20: other pods answer with every HTTP status', async () => {
  const expected: readonly (readonly [string, readonly number[]])[] = [
    [DELIVERED, [200, 201, 202, 204]],
    ['moved for this delivery', [301, 302, 307, 308]],
    ['refused for this delivery', [400, 401, 403, 413, 415, 422]],
    ['gone for the pod', [404, 405, 410, 501]],
    ['overloaded for the pod', [408, 425, 429, 500, 502, 503, 504]],
  ]
  const ids = new Map<number, number>()
  for (const status of expected.flatMap(([, statuses]) => statuses)) {
    const server = await serveHttp((request, response) => {
      const headers = { location: '/', ...(status === 503 && { 'retry-after': '7200' }) }
      request.resume().on('end', () => response.writeHead(status, headers).end())
    })
    ids.set(status, await addFollowingPod(server))
  }

  expect((await publishWithRetries(podUnderFaults, podUnderFaults.bob)).status).toBe(200)
  await until('the message is written', 20_000, async () => {
    return (await podUnderFaults.pod.db('outboundMessages').where({ record: 'post' })).length > 1
  })
  await untilAttempted(ids)

  const outcome = expected.flatMap(([what, statuses]) => statuses.map((status) => [status, what]))
  expect(await outcomesOf(ids)).toEqual(Object.fromEntries(outcome))
  const { rows } = await podUnderFaults.pod.db.raw(
    `select pods.id, extract(epoch from greatest(due_at, next_try_at) - now()) as seconds
     from deliveries join pods on pods.id = deliveries.pod_id where pods.id = any(?)`,
    [[...ids.values()]],
  )
  const retrySecondsOf = (row: Attempt) => (row.id === ids.get(503) ? 7_200 : 256)
  const early = rows.filter((row: Attempt) => Number(row.seconds) < retrySecondsOf(row) - ATTEMPTED_WITHIN_MS / 1_000)
  const late = rows.filter((row: Attempt) => Number(row.seconds) > retrySecondsOf(row) + JITTER)
  expect([...early, ...late]).toEqual([])

  const retriedStatuses = expected.flatMap(([what, statuses]) => (what.endsWith('for the pod') ? statuses : []))
  const retriedDeliveries = () =>
    podUnderFaults.pod.db('deliveries').whereIn(
      'podId',
      retriedStatuses.map((status) => ids.get(status) ?? 0),
    )
  expect(new Set((await retriedDeliveries()).map(({ state }) => state))).toEqual(new Set(['waiting']))
  await retriedDeliveries().delete() // these deliveries are retried for fourteen days
  await podUnderFaults.waitUntilIdle(300_000) // skips hours of waiting
  const finalRows = await podUnderFaults.pod
    .db('deliveries')
    .whereIn('podId', [...ids.values()])
    .select('podId', 'state', 'attempts')
  const refused = expected.flatMap(([what, statuses]) =>
    what === DELIVERED || what.endsWith('for the pod') ? [] : statuses.map((status) => ids.get(status)),
  )
  expect(finalRows.map(({ podId }) => podId).toSorted()).toEqual(refused.toSorted())
  expect([...new Set(finalRows.map(({ state, attempts }) => `${state} after ${attempts}`))]).toEqual([
    `dead after ${MAX_ATTEMPTS}`,
  ])
})
