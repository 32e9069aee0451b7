import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { type FastifyInstance, fastify } from 'fastify'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { closeApp } from '../../../src/web/server/closing/close-app.js'
import { drainConnections } from '../../../src/web/server/closing/drain-connections.js'
import { openHttpServer } from '../../../src/web/server/http-server.js'
import { HTTP_LIMITS } from '../../../src/web/server/limits.js'

/** Far longer than any test: a shutdown that waits for it does not end. */
const FOR_EVER = 600_000

describe('closeApp', () => {
  let app: FastifyInstance
  let agent: Agent
  let arrived: Promise<unknown>
  let answer: () => void
  beforeEach(async () => {
    app = fastify({ serverFactory: (serve) => openHttpServer(serve, HTTP_LIMITS) })
    agent = new Agent({ keepAlive: true })
    const held = new Promise<void>((resolve) => {
      answer = resolve
    })
    arrived = new Promise<void>((resolve) => {
      app.get('/held', async () => {
        resolve()
        await held
        return 'done'
      })
    })
    await app.listen({ host: '127.0.0.1', port: 0 })
  })
  afterEach(() => agent.destroy())

  function ask() {
    const { port } = app.server.address() as AddressInfo // it listens on a port
    return get({ port, host: '127.0.0.1', path: '/held', agent })
  }

  it('waits for a running request, but not for a kept-alive connection', async () => {
    const request = ask()
    await arrived
    const closed = closeApp(app, FOR_EVER)
    await vi.waitFor(() => expect(app.server.listening).toBe(false), { interval: 5 })
    answer()

    const [response] = await once(request, 'response')
    response.resume()
    expect(response.statusCode).toBe(200)
    await closed
  })

  it('does not wait for a connection without requests', async () => {
    const { port } = app.server.address() as AddressInfo // it listens on a port
    const accepted = once(app.server, 'connection')
    const socket = connect(port, '127.0.0.1').resume()
    const ended = once(socket, 'close')
    await accepted

    await closeApp(app, FOR_EVER)
    await ended
  })

  it('ends a request that takes too long', async () => {
    const request = ask()
    const cutOff = new Promise((resolve) => request.on('error', resolve))
    await arrived

    await closeApp(app, 50)

    expect(await cutOff).toMatchObject({ code: 'ECONNRESET' })
  })
})

describe('drainConnections', () => {
  let app: FastifyInstance
  let agent: Agent
  let endStream: () => void
  beforeEach(async () => {
    app = fastify({ serverFactory: (serve) => openHttpServer(serve, HTTP_LIMITS) })
    agent = new Agent({ keepAlive: true, maxSockets: 1 })
    app.get('/', async () => 'done')
    app.get('/stream', (_request, reply) => {
      reply.hijack().raw.writeHead(200).write('begun')
      endStream = () => reply.raw.end()
    })
    await app.listen({ host: '127.0.0.1', port: 0 })
  })
  afterEach(async () => {
    agent.destroy()
    await closeApp(app, 0)
  })

  async function ask(port: number, connection: Agent | false = agent) {
    const [response] = await once(get({ port, host: '127.0.0.1', path: '/', agent: connection }), 'response')
    response.resume()
    await once(response, 'end')
    return response.headers.connection
  }
  const portOf = () => (app.server.address() as AddressInfo).port // it listens on a port

  it('serves one more request on an idle connection, and ends with the last connection', async () => {
    const port = portOf()
    expect(await ask(port)).toBe('keep-alive')

    const drained = drainConnections(app.server, FOR_EVER, () => undefined)
    await vi.waitFor(() => expect(app.server.listening).toBe(false), { interval: 5 })

    await expect(ask(port, false)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    expect(await ask(port)).toBe('close')
    await drained
  })

  it('closes the connection of a response that it ends', async () => {
    const [response] = await once(get({ port: portOf(), host: '127.0.0.1', path: '/stream', agent }), 'response')
    response.resume()

    await drainConnections(app.server, FOR_EVER, () => endStream())
  })

  it('does not wait for a connection that stays idle', async () => {
    await ask(portOf())

    await drainConnections(app.server, 50, () => undefined)
  })
})
