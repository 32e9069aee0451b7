import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Person } from '../../../src/persistence/models/person.js'
import type { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { until } from '../../soak/until.js'
import { addRemotePod } from '../../support/federation/recording-pod.js'
import { type ScriptedServer, serveHttp, serveRaw } from '../../support/http/scripted-server.js'
import { type PodUnderFaults, startAssailedPod } from './pod-under-faults.js'
import { publishPatiently } from './senders.js'
import { store } from './this-run.js'

/** Longer than the time limit of an HTTP exchange. */
const WITHIN = 50_000
/** Longer than any wait for a silent pod. */
const SOONER = 20_000
const WELL = 'well'
/** Seconds of the first wait. */
const JITTER = 60
const TRIES = 10

/** Time of the next attempt of a delivery. */
interface Try {
  readonly id: number
  readonly seconds: string
}

let podUnderFaults: PodUnderFaults
const servers: ScriptedServer[] = []
beforeAll(async () => {
  podUnderFaults = await startAssailedPod({ store: store() })
})
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()))
  await podUnderFaults?.close()
})

/** A pod behind this server, with a follower of bob. */
async function followFrom(server: ScriptedServer, changes: Partial<RemotePod> = {}): Promise<number> {
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

/** The pending delivery to each of these pods, or that the pod is healthy. */
async function outcomes(ids: ReadonlyMap<string | number, number>): Promise<Readonly<Record<string, unknown>>> {
  const rows = await podUnderFaults.pod
    .db('pods')
    .leftJoin('deliveries', 'deliveries.podId', 'pods.id')
    .whereIn('pods.id', [...ids.values()])
    .select('pods.id', 'attempts', 'lastFault', 'lastStatus', 'failures')
  const byId = new Map(rows.map((row) => [row.id, row]))
  return Object.fromEntries(
    [...ids].map(([name, id]) => {
      const row = byId.get(id)
      if (row === undefined || row.attempts === null) return [name, WELL]
      return [name, `${row.lastFault} ${row.failures === 0 ? 'for this one' : 'for all'}`]
    }),
  )
}

/** Resolves when each delivery was attempted. */
async function untilTried(ids: ReadonlyMap<string | number, number>): Promise<void> {
  await until('all were tried', WITHIN, async () => {
    const untried = await podUnderFaults.pod
      .db('deliveries')
      .whereIn('podId', [...ids.values()])
      .whereNull('lastFault')
    const queued = await podUnderFaults.pod.db('outbox').where({ name: 'dispatch' })
    return untried.length + queued.length === 0
  })
}

it('F18: other pods fail, each in a different way', async () => {
  const closed = await serveRaw(() => {})
  const ids = new Map([
    ['refuses', await followFrom(closed)],
    ['says nothing', await followFrom(await serveRaw(() => {}))],
    ['resets', await followFrom(await serveRaw((socket) => socket.resetAndDestroy()))],
    ['hangs up', await followFrom(await serveRaw((socket) => void socket.once('data', () => socket.destroy())))],
    ['speaks nonsense', await followFrom(await serveRaw((socket) => void socket.end('Good day to you\r\n\r\n')))],
    ['speaks no TLS', await followFrom(await serveHttp((_, response) => response.end()), { ssl: true })],
    [
      'answers late',
      await followFrom(
        await serveHttp(async (request, response) => {
          request.resume()
          await pause(10_000)
          response.writeHead(202).end()
        }),
      ),
    ],
    [
      'never ends its answer',
      await followFrom(
        await serveHttp((request, response) => {
          request.resume()
          response.writeHead(200)
          const timer = setInterval(() => response.write(' '), 500)
          response.on('close', () => clearInterval(timer))
        }),
      ),
    ],
    [
      'is well',
      await followFrom(
        await serveHttp((request, response) => void request.resume().on('end', () => response.writeHead(202).end())),
      ),
    ],
  ])
  await closed.close()

  expect((await publishPatiently(podUnderFaults, podUnderFaults.bob)).status).toBe(200)
  await until('the one that is well has it', SOONER, async () => {
    const told = await podUnderFaults.pod.db('outboundMessages').where({ record: 'post' })
    return told.length > 0 && (await outcomes(ids))['is well'] === WELL
  })
  await untilTried(ids)

  expect(await outcomes(ids)).toEqual({
    refuses: 'net for all',
    'says nothing': 'timeout for all',
    resets: 'net for all',
    'hangs up': 'net for all',
    'speaks nonsense': 'bad_answer for all',
    'speaks no TLS': 'ssl for all',
    'answers late': WELL,
    'never ends its answer': WELL,
    'is well': WELL,
  })
  await podUnderFaults.pod.db('contacts').where({ userId: podUnderFaults.bob.userId }).delete()
  await podUnderFaults.pod
    .db('deliveries')
    .whereIn('podId', [...ids.values()])
    .delete() // each attempt at the silent pod takes long
})

it('F20: other pods answer with every HTTP status', async () => {
  const expected: readonly (readonly [string, readonly number[]])[] = [
    [WELL, [200, 201, 202, 204]],
    ['moved for this one', [301, 302, 307, 308]],
    ['refused for this one', [400, 401, 403, 413, 415, 422]],
    ['gone for all', [404, 405, 410, 501]],
    ['overloaded for all', [408, 425, 429, 500, 502, 503, 504]],
  ]
  const ids = new Map<number, number>()
  for (const status of expected.flatMap(([, statuses]) => statuses)) {
    const server = await serveHttp((request, response) => {
      const headers = { location: '/', ...(status === 503 && { 'retry-after': '7200' }) }
      request.resume().on('end', () => response.writeHead(status, headers).end())
    })
    ids.set(status, await followFrom(server))
  }

  expect((await publishPatiently(podUnderFaults, podUnderFaults.bob)).status).toBe(200)
  await until('the message is written', 20_000, async () => {
    return (await podUnderFaults.pod.db('outboundMessages').where({ record: 'post' })).length > 1
  })
  await untilTried(ids)

  const outcome = expected.flatMap(([what, statuses]) => statuses.map((status) => [status, what]))
  expect(await outcomes(ids)).toEqual(Object.fromEntries(outcome))
  const { rows } = await podUnderFaults.pod.db.raw(
    `select pods.id, extract(epoch from greatest(due_at, next_try_at) - now()) as seconds
     from deliveries join pods on pods.id = deliveries.pod_id where pods.id = any(?)`,
    [[...ids.values()]],
  )
  const retrySecondsOf = (row: Try) => (row.id === ids.get(503) ? 7_200 : 256)
  const early = rows.filter((row: Try) => Number(row.seconds) < retrySecondsOf(row) - WITHIN / 1_000)
  const late = rows.filter((row: Try) => Number(row.seconds) > retrySecondsOf(row) + JITTER)
  expect([...early, ...late]).toEqual([])

  const away = expected.flatMap(([what, statuses]) => (what.endsWith('for all') ? statuses : []))
  const ofAway = () =>
    podUnderFaults.pod.db('deliveries').whereIn(
      'podId',
      away.map((status) => ids.get(status) ?? 0),
    )
  expect(new Set((await ofAway()).map(({ state }) => state))).toEqual(new Set(['waiting']))
  await ofAway().delete() // these deliveries are retried for fourteen days
  await podUnderFaults.settled(300_000) // skips hours of waiting
  const ends = await podUnderFaults.pod
    .db('deliveries')
    .whereIn('podId', [...ids.values()])
    .select('podId', 'state', 'attempts')
  const refused = expected.flatMap(([what, statuses]) =>
    what === WELL || what.endsWith('for all') ? [] : statuses.map((status) => ids.get(status)),
  )
  expect(ends.map(({ podId }) => podId).toSorted()).toEqual(refused.toSorted())
  expect([...new Set(ends.map(({ state, attempts }) => `${state} after ${attempts}`))]).toEqual([`dead after ${TRIES}`])
})
