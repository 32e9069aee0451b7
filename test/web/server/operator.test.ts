import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readSoftware } from '../../../src/config/software.js'
import { StartError } from '../../../src/errors/start-error.js'
import { type Metrics, openMetrics } from '../../../src/operations/metrics.js'
import { buildOperatorApp } from '../../../src/operations/operator-server.js'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'
import { buildApp } from '../../../src/web/server/app.js'
import { listen, listenForOperator } from '../../../src/web/server/listen.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

describe('the server of the operator', () => {
  let pod: TestPod
  let metrics: Metrics
  let app: FastifyInstance
  let operator: FastifyInstance
  beforeAll(async () => {
    pod = await buildPod()
    metrics = openMetrics(pod.pod)
    app = await buildApp(pod.pod, { metrics })
    operator = await buildOperatorApp({ log: pod.pod.log, metrics, readiness: app.readiness })
  })
  afterAll(async () => {
    await operator.close()
    await app.close()
    await pod.close()
  })

  it('reports the health of the process', async () => {
    expect((await operator.inject('/health/live')).json()).toEqual({ live: true })
    const ready = await operator.inject('/health/ready')
    expect([ready.statusCode, ready.json()]).toEqual([
      200,
      { ready: true, database: 'ok', queue: 'ok', version: readSoftware().version },
    ])
  })

  it('counts the responses of the public server by route, never by path', async () => {
    await app.inject('/api/v1/user?access_token=secret')
    await app.inject('/some/unknown/path')

    const { headers, body } = await operator.inject('/metrics')

    expect(headers['content-type']).toContain('text/plain')
    expect(body).toContain('pod_http_requests_total{method="GET",route="/api/v1/user",status="401"} 1')
    expect(body).toContain('pod_http_requests_total{method="GET",route="unknown",status="404"} 1')
    expect(body).toContain('pod_http_request_seconds_count{method="GET",route="/api/v1/user"} 1')
    expect(body).not.toMatch(/unknown\/path|secret/)
  })

  it('reports the software and the connections to the database', async () => {
    const { body } = await operator.inject('/metrics')

    expect(body).toMatch(/^pod_build_info\{software="diaspora-pod",version="\d+\.\d+\.\d+",/m)
    expect(body).toContain(`node="${process.versions.node}",queue_store="`)
    expect(body).toMatch(/^pod_db_acquire_seconds_count\{pool="primary"\} [1-9]\d*$/m)
    for (const state of ['used', 'free', 'waiting']) {
      expect(body).toMatch(new RegExp(`^pod_db_connections\\{pool="primary",state="${state}"\\} \\d+$`, 'm'))
    }
  })

  it('reports the delay of the event loop since the last request', async () => {
    const lag = async (figure: string) => {
      const { body } = await operator.inject('/metrics')
      return Number(new RegExp(`^nodejs_eventloop_lag_${figure}_seconds (\\S+)`, 'm').exec(body)?.[1])
    }
    // The first turn makes the loop busy, so that it is sampled often; a later one is longer than it is between two samples.
    await vi.waitFor(
      async () => {
        const until = performance.now() + 600
        while (performance.now() < until);
        await new Promise((resolve) => setTimeout(resolve, 0))
        expect(await lag('max')).toBeGreaterThan(0.3)
      },
      { timeout: 30_000 },
    )
    expect(
      await vi.waitFor(
        async () => {
          const least = await lag('min')
          expect(least).toBeLessThan(0.1)
          return least
        },
        { timeout: 30_000 },
      ),
    ).toBeGreaterThan(0)
  })

  it('reports queue lengths and figures of the process', async () => {
    await pod.pod.db('outbox').insert({ queue: 'maintenance', name: 'nothing' })

    const { body } = await operator.inject('/metrics')

    expect(body).toContain('pod_outbox_rows{state="waiting"} 1')
    expect(body).toContain('pod_jobs{queue="inbound",state="waiting"} 0')
    expect(body).toContain('pod_reachable{part="database"} 1')
    expect(body).toContain('pod_reachable{part="queue"} 1')
    expect(body).toContain('pod_pods_asleep 0')
    expect(body).not.toMatch(/^pod_last_sweep_seconds/m) // never, and that is not "just now"
    expect(body).toContain('process_resident_memory_bytes')
  })

  it('reports an unavailable database without old figures', async () => {
    const db = openDatabase({
      ...WEB_DATABASE_LIMITS,
      url: 'postgres://nobody@127.0.0.1:9/none',
      applicationName: 'test',
    })
    const text = await openMetrics({ ...pod.pod, db }).text()
    await db.destroy()

    expect(text).toContain('pod_reachable{part="database"} 0')
    expect(text).not.toMatch(/^pod_(jobs|outbox|oldest|pods|last|deliveries)/m)
  })

  it('is not on the public server', async () => {
    expect((await app.inject('/metrics')).statusCode).toBe(404)
  })

  it('is not ready as soon as the public server closes', async () => {
    const closing = await buildApp(pod.pod)
    expect(await closing.readiness()).toMatchObject({ ready: true })

    await closing.close()

    expect(await closing.readiness()).toEqual({ ready: false, state: 'closing' })
  })
})

describe('where it listens', () => {
  let pod: TestPod
  let app: FastifyInstance
  let taken: Server
  let port: number
  beforeAll(async () => {
    pod = await buildPod()
  })
  afterAll(() => pod.close())
  beforeEach(async () => {
    app = await buildOperatorApp({
      log: pod.pod.log,
      metrics: openMetrics(pod.pod),
      readiness: async () => ({ ready: true }),
    })
    taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const address = taken.address()
    port = typeof address === 'object' && address ? address.port : 0
  })
  afterEach(async () => {
    taken.close()
    await app.close()
  })

  it('is the next free port if the default one is in use and none is configured', async () => {
    const address = await listenForOperator(app, 'default', port)

    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(Number(new URL(String(address)).port)).toBeGreaterThan(port)
    expect((await fetch(`${address}/health/live`)).status).toBe(200)
  })

  it('is the configured port, or the pod does not start', async () => {
    const start = listenForOperator(app, { host: '127.0.0.1', port }, 9394)

    await expect(start).rejects.toThrow(StartError)
    await expect(start).rejects.toThrow(`port ${port} of 127.0.0.1`)
    await expect(start).rejects.toThrow('ADMIN_LISTEN')
  })

  it('is nowhere when it is turned off', async () => {
    expect(await listenForOperator(app, 'off', port)).toBeNull()
  })

  it.each([
    ['an address of another machine', { host: '192.0.2.1', port: 0 }],
    ['a socket in a folder that is not there', { path: '/no/such/folder/socket' }],
  ])('is not %s', async (_name, where) => {
    await expect(listen(app, where, 'Set HOST.')).rejects.toThrow(/^The pod cannot listen on .*: .*\. Set HOST\.$/)
  })

  describe('a socket', () => {
    let folder: string
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'pod-socket-'))
    })
    afterEach(() => rm(folder, { recursive: true }))

    it('is taken over from a process that was killed', async () => {
      const path = join(folder, 'abandoned')
      const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`
      await once(spawn(process.execPath, ['-e', script]), 'exit')

      expect(await listen(app, { path }, 'Set HOST.')).toBe(`unix:${path}`)
    })

    it('is not taken from a process that listens on it', async () => {
      const path = join(folder, 'in-use')
      const other = createServer().listen(path)
      await once(other, 'listening')

      await expect(listen(app, { path }, 'Set HOST.')).rejects.toThrow(StartError)
      other.close()
    })
  })
})
