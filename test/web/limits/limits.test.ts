import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { apiRoutes } from '../../../src/web/routes/api/api-routes.js'
import { buildApp } from '../../../src/web/server/app.js'
import { HTTP_LIMITS, type HttpLimits } from '../../../src/web/server/limits.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const arrivals: string[] = []
const { promise: released, resolve: release } = deferred()

function deferred() {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((done) => {
    resolve = done
  })
  return { promise, resolve }
}

const routes: FastifyPluginAsyncTypebox = async (app) => {
  await apiRoutes(app, {})
  app.get('/held', { config: { public: true } }, async (request) => {
    arrivals.push(request.id)
    await released
  })
  app.post('/read', { schema: { body: Type.Object({}) }, config: { public: true } }, async () => ({}))
}

describe('limits of a connection', () => {
  let pod: TestPod
  let app: FastifyInstance
  const sockets: Socket[] = []
  beforeAll(async () => {
    pod = await buildPod()
  })
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    await app.close()
  })
  afterAll(() => pod.close())

  async function listenWith(limits: Partial<HttpLimits>): Promise<void> {
    app = await buildApp(pod.pod, { api: routes, limits: { ...HTTP_LIMITS, connectionsCheckMs: 20, ...limits } })
    await app.listen({ host: '127.0.0.1', port: 0 })
  }

  async function dial(): Promise<Socket> {
    const { port } = app.server.address() as AddressInfo // it listens on a port
    const socket = connect(port, '127.0.0.1')
    sockets.push(socket)
    await once(socket, 'connect')
    return socket
  }

  /** All that comes until the other side closes; the time limit of the test ends a wait that would not. */
  async function untilClosed(socket: Socket): Promise<string> {
    let received = ''
    socket.on('data', (chunk) => {
      received += chunk
    })
    socket.on('error', () => undefined)
    await once(socket, 'close')
    return received
  }

  it('disconnects a client that sends its headers too slowly', async () => {
    await listenWith({ headersTimeoutMs: 50 })
    const socket = await dial()
    socket.write('GET /api/v1/user HTTP/1.1\r\nhost: pod.example\r\nx-slow: ')

    const answer = await untilClosed(socket)

    expect(answer).toMatch(/^HTTP\/1\.1 408 /)
    expect(answer).toContain('{"code":408,')
  })

  it('disconnects a client that sends its body too slowly', async () => {
    await listenWith({ headersTimeoutMs: 50, requestTimeoutMs: 100 })
    const socket = await dial()
    socket.write(
      'POST /api/v1/read HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{',
    )

    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 408 /)
  })

  describe('of a slow upload', () => {
    const body = '--x\r\ncontent-disposition: form-data; name="image"; filename="a.png"\r\n\r\nno picture\r\n--x--\r\n'
    async function beginUpload(limits: Partial<HttpLimits>): Promise<Socket> {
      await listenWith({ headersTimeoutMs: 50, ...limits })
      const { token } = (await pod.people('alice')).alice
      const socket = await dial()
      const head = `POST /api/v1/photos HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\nconnection: close`
      socket.write(
        `${head}\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: ${body.length}\r\n\r\n${body.slice(0, 50)}`,
      )
      return socket
    }

    it('allow more time than for other bodies', async () => {
      const upload = await beginUpload({ requestTimeoutMs: 100 })
      const other = await dial()
      other.write(
        'POST /api/v1/read HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{',
      )
      expect(await untilClosed(other)).toMatch(/^HTTP\/1\.1 408 /)

      upload.write(body.slice(50))

      expect(await untilClosed(upload)).toMatch(/^HTTP\/1\.1 422 /)
    })

    it('end it at the longer limit', async () => {
      const upload = await beginUpload({ requestTimeoutMs: 50, longRequestTimeoutMs: 200 })

      expect(await untilClosed(upload)).toMatch(/^HTTP\/1\.1 408 /)
    })
  })

  it('disconnects a client that sends nothing', async () => {
    await listenWith({ idleTimeoutMs: 50 })

    expect(await untilClosed(await dial())).toBe('')
  })

  it('refuses more headers than any client needs', async () => {
    await listenWith({})
    const socket = await dial()
    socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx-long: ${'a'.repeat(HTTP_LIMITS.headerBytes)}\r\n\r\n`)

    const answer = await untilClosed(socket)

    expect(answer).toMatch(/^HTTP\/1\.1 431 /)
    expect(answer).toContain('{"code":431,')
  })

  it('rejects data that is not HTTP', async () => {
    await listenWith({})
    const socket = await dial()
    socket.write('hello?\r\n\r\n')

    const answer = await untilClosed(socket)

    expect(answer).toMatch(/^HTTP\/1\.1 400 /)
    expect(answer).toContain('x-content-type-options: nosniff')
    expect(answer).toContain('cache-control: no-store')
    expect(answer).toContain('{"code":400,')
  })

  it('closes a connection after its maximum of requests', async () => {
    await listenWith({ requestsPerSocket: 2 })
    const socket = await dial()
    const ask = async () => {
      socket.write('GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n')
      const [answer] = await once(socket, 'data')
      return String(answer)
    }

    expect(await ask()).toMatch(/connection: keep-alive/i)
    expect(await ask()).toMatch(/connection: close/i)
  })

  it('answers pipelined requests in order', async () => {
    await listenWith({ requestsAhead: 2 })
    const socket = await dial()
    socket.write('GET /api/v1/user HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')

    expect(await untilClosed(socket)).toMatch(/^HTTP\/1\.1 401 [\s\S]*HTTP\/1\.1 200 /)
  })

  it('disconnects a client that pipelines too many requests', async () => {
    await listenWith({ requestsAhead: 3 })
    const socket = await dial()
    socket.write('GET /api/v1/held HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(500))

    expect(await untilClosed(socket)).toBe('')
    expect(arrivals.length).toBeLessThanOrEqual(3)
    release()
  })

  it('counts only requests without a response yet', async () => {
    await listenWith({ requestsAhead: 1 })
    const socket = await dial()
    for (let request = 0; request < 3; request += 1) {
      socket.write('GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n')
      const [answer] = await once(socket, 'data')
      expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /)
    }
  })

  it('accepts no more connections than it can serve', async () => {
    await listenWith({ connections: 1 })
    const first = await dial()
    const second = await dial()
    second.write('GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n')

    expect(await untilClosed(second)).toBe('')
    first.write('GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    expect(await untilClosed(first)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('answers 503 while the event loop is late, except for the health of the process', async () => {
    await listenWith({ eventLoopDelayMs: Number.MIN_VALUE })

    const late = await vi.waitFor(
      async () => {
        const response = await app.inject('/api/v1/user')
        expect(response.statusCode).toBe(503)
        return response
      },
      { interval: 20 },
    )

    expect(late.json()).toEqual({ code: 503, message: expect.any(String), reason: 'overloaded' })
    expect(Number(late.headers['retry-after'])).toBeGreaterThan(0)
    expect((await app.inject('/health/live')).statusCode).toBe(200)
    expect((await app.inject('/health/ready')).statusCode).toBe(200)
  })
})
