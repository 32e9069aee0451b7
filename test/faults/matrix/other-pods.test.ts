import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Person } from '../../../src/persistence/models/person.js'
import type { Pod as OtherPod } from '../../../src/persistence/models/pod.js'
import { runDeadPods } from '../../soak/dead-pods.js'
import { runFanOut } from '../../soak/fan-out.js'
import { until } from '../../soak/until.js'
import { knowPod } from '../../support/deliveries.js'
import { queueBackends } from '../../support/queue-backends.js'
import { type ScriptedServer, serveHttp, serveRaw } from '../../support/scripted-server.js'
import { type AssailedPod, startAssailedPod } from './assailed-pod.js'
import { publish } from './senders.js'

/** Longer than an exchange may take. */
const WITHIN = 50_000
const WELL = 'well'

describe.each(queueBackends)('with the queue in $store', ({ store }) => {
  let assailed: AssailedPod
  const servers: ScriptedServer[] = []
  beforeAll(async () => {
    assailed = await startAssailedPod({ store })
  })
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.close()))
    await assailed?.close()
  })

  /** A pod behind this server, with somebody who follows bob. */
  async function followFrom(server: ScriptedServer, changes: Partial<OtherPod> = {}): Promise<number> {
    servers.push(server)
    const { pod, others, bob } = assailed
    const host = `localhost:${server.port}`
    const { id } = await knowPod(pod, host, changes)
    const { guid, address, publicKey } = others.person(`fan@${host}`)
    const person = await pod.db.transaction((transaction) =>
      Person.add(transaction, { guid, address, publicKey, podId: id }),
    )
    await pod.db('contacts').insert({ userId: bob.userId, personId: person.id, sharing: true, receiving: false })
    return id
  }

  /** What is left of a delivery to each of these pods, or that all is well. */
  async function fates(ids: ReadonlyMap<string | number, number>): Promise<Readonly<Record<string, unknown>>> {
    const rows = await assailed.pod
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

  /** Resolves when each of them was tried. */
  async function untilTried(ids: ReadonlyMap<string | number, number>): Promise<void> {
    await until('all were tried', WITHIN, async () => {
      const untried = await assailed.pod
        .db('deliveries')
        .whereIn('podId', [...ids.values()])
        .where({ attempts: 0 })
      const queued = await assailed.pod.db('outbox').where({ name: 'dispatch' })
      return untried.length + queued.length === 0
    })
  }

  it('F18: each of them is ill in another way', async () => {
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

    expect((await publish(assailed, assailed.bob)).status).toBe(200)
    await until('the one that is well has it', 10_000, async () => {
      const told = await assailed.pod.db('outboundMessages').where({ record: 'post' })
      return told.length > 0 && (await fates(ids))['is well'] === WELL
    })
    await untilTried(ids)

    expect(await fates(ids)).toEqual({
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
    await assailed.pod.db('contacts').where({ userId: assailed.bob.userId }).delete()
  })

  it('F20: they answer with every status there is', async () => {
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

    expect((await publish(assailed, assailed.bob)).status).toBe(200)
    await until('the message is written', 20_000, async () => {
      return (await assailed.pod.db('outboundMessages').where({ record: 'post' })).length > 1
    })
    await untilTried(ids)

    const fate = expected.flatMap(([what, statuses]) => statuses.map((status) => [status, what]))
    expect(await fates(ids)).toEqual(Object.fromEntries(fate))
    const { rows } = await assailed.pod.db.raw(
      `select id, next_try_at > now() + interval '7000 seconds' as late from pods where next_try_at is not null`,
    )
    const late = rows.filter((row: { late: boolean }) => row.late).map(({ id }: { id: number }) => id)
    expect(late).toEqual([ids.get(503)])
  })

  it('F19: two hundred of them are dead, and one is well', async () => {
    const { wrongs, p95 } = await runDeadPods({
      store,
      silent: 150,
      refusing: 40,
      failing: 10,
      posts: 10,
      threads: true,
      withinMs: 90_000,
    })

    expect(wrongs).toEqual([])
    expect(p95).toBeLessThan(10_000) // it waits for none of those that say nothing
  })

  it('F01: workers that deliver are killed one after the other', async () => {
    const { wrongs, killed } = await runFanOut({
      store,
      pods: 40,
      posts: 5,
      killEveryMs: 1_500,
      threads: false,
      withinMs: 90_000,
    })

    expect(wrongs).toEqual([])
    expect(killed).toBeGreaterThan(0)
  })
})
