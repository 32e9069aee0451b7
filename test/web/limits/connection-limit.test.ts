import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { parseTrustedProxies } from '../../../src/networks/trusted-proxies.js'
import { type ConnectionClosure, limitConnections } from '../../../src/web/limits/connection-limit.js'
import { openHttpServer } from '../../../src/web/server/http-server.js'
import { HTTP_LIMITS, type HttpLimits } from '../../../src/web/server/limits.js'

const REQUEST = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n'

describe('a server that is short of connections', () => {
  const sockets: Socket[] = []
  const closures: ConnectionClosure[] = []
  let server: Server

  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy()
    closures.length = 0
    await new Promise((resolve) => server.close(resolve))
  })

  async function listenWith(
    limits: Partial<HttpLimits>,
    { trust = '10.0.0.1', serve }: { trust?: string; serve?: RequestListener } = {},
  ): Promise<void> {
    server = openHttpServer(
      serve ?? ((_request, response) => response.end('answer')),
      { ...HTTP_LIMITS, ...limits },
      { isTrustedProxy: parseTrustedProxies(trust), countClosure: (reason) => closures.push(reason) },
    )
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  }

  async function open(localAddress = '127.0.0.1'): Promise<Socket> {
    const { port } = server.address() as AddressInfo
    const accepted = once(server, 'connection')
    const socket = connect({ port, host: '127.0.0.1', localAddress })
    sockets.push(socket)
    socket.on('error', () => undefined)
    await Promise.all([once(socket, 'connect'), accepted])
    return socket
  }

  async function request(socket: Socket): Promise<string> {
    const answered = once(socket, 'data')
    socket.write(REQUEST)
    const [answer] = await answered
    return String(answer)
  }

  it('closes the longest idle connection of an address that opens one too many', async () => {
    await listenWith({ connectionsOfAddress: 2 })
    const [first, second] = [await open(), await open()]
    await request(first)
    await request(second)
    await request(first) // so that the second one is idle for longer

    const closed = once(second, 'close')
    const third = await open()
    await closed

    expect(await request(third)).toContain('200 OK')
    expect(await request(first)).toContain('200 OK')
    expect(closures).toEqual(['address_limit'])
  })

  it('closes the new connection where all others of the address have a request under way', async () => {
    const arrived = vi.fn()
    await listenWith({ connectionsOfAddress: 1 }, { serve: arrived })
    const first = await open()
    first.write(REQUEST)
    await vi.waitFor(() => expect(arrived).toHaveBeenCalledOnce())

    const second = await open()
    if (!second.closed) await once(second, 'close')

    expect(first.closed).toBe(false)
    expect(closures).toEqual(['address_limit'])
  })

  it('counts addresses apart', async () => {
    await listenWith({ connectionsOfAddress: 1 })
    const first = await open('127.0.0.1')
    const second = await open('127.0.0.2')

    expect([await request(first), await request(second)]).toEqual([
      expect.stringContaining('200 OK'),
      expect.stringContaining('200 OK'),
    ])
    expect(closures).toEqual([])
  })

  it('does not count the connections of a trusted proxy for its address', async () => {
    await listenWith({ connectionsOfAddress: 1 }, { trust: 'loopback' })
    const opened = [await open(), await open(), await open()]

    for (const socket of opened) expect(await request(socket)).toContain('200 OK')
    expect(closures).toEqual([])
  })

  it('closes an idle connection of the address with the most connections, to accept a new one', async () => {
    await listenWith({ connections: 5, connectionsFilledPercent: 80 })
    const small = await open('127.0.0.2')
    const large = [await open('127.0.0.1'), await open('127.0.0.1'), await open('127.0.0.1')]
    const closed = once(large[0] as Socket, 'close')

    const newcomer = await open('127.0.0.3')
    await closed

    expect(await request(newcomer)).toContain('200 OK')
    expect(await request(small)).toContain('200 OK')
    expect(closures).toEqual(['idle'])
  })

  it('closes idle connections of a trusted proxy last', async () => {
    await listenWith({ connections: 5, connectionsFilledPercent: 80 }, { trust: '127.0.0.1' })
    const proxy = [await open('127.0.0.1'), await open('127.0.0.1'), await open('127.0.0.1')]
    const client = await open('127.0.0.2')
    const closed = once(client, 'close')

    await open('127.0.0.3')
    await closed

    for (const socket of proxy) expect(await request(socket)).toContain('200 OK')
  })
})

describe('the networks of one IPv6 /48', () => {
  const closures: ConnectionClosure[] = []
  const server = createServer()
  const limits = { connections: 10, connectionsOfAddress: 2, connectionsOfSite: 4, connectionsFilledPercent: 50 }
  limitConnections(server, { limits, isTrustedProxy: () => false, countClosure: (reason) => closures.push(reason) })
  const sockets: Socket[] = []

  afterEach(async () => {
    await Promise.all(sockets.splice(0).map((socket) => once(socket.destroy(), 'close')))
    closures.length = 0
  })

  /** A connection from anywhere; a machine has only one IPv6 address to connect to itself from. */
  function openFrom(remoteAddress: string, isBusy = false): Socket {
    const socket = Object.defineProperty(new Socket(), 'remoteAddress', { value: remoteAddress })
    sockets.push(socket)
    server.emit('connection', socket)
    if (isBusy) server.emit('request', { socket } as IncomingMessage, new EventEmitter() as ServerResponse)
    return socket
  }

  const listOpen = () => sockets.filter(({ destroyed }) => !destroyed).map(({ remoteAddress }) => remoteAddress)

  it('have a limit of connections together, also with requests under way', () => {
    for (const network of [1, 2, 3, 4, 5]) openFrom(`2001:db8:1:${network}::1`, true)
    openFrom('2001:db8:2:1::1')

    expect(listOpen()).toEqual([...[1, 2, 3, 4].map((network) => `2001:db8:1:${network}::1`), '2001:db8:2:1::1'])
    expect(closures).toEqual(['address_limit'])
  })

  it('lose an idle connection first if they have more together than any address', () => {
    openFrom('192.0.2.1')
    openFrom('192.0.2.1')
    for (const network of [1, 2, 3]) openFrom(`2001:db8:1:${network}::1`)
    openFrom('192.0.2.2')

    expect(listOpen()).toEqual(['192.0.2.1', '192.0.2.1', '2001:db8:1:2::1', '2001:db8:1:3::1', '192.0.2.2'])
    expect(closures).toEqual(['idle'])
  })
})

describe('a trusted proxy', () => {
  it.each<[string | boolean, string | undefined, boolean]>([
    ['loopback', '127.0.0.9', true],
    ['loopback', '::ffff:127.0.0.1', true],
    ['loopback', '::1', true],
    ['loopback', '10.0.0.1', false],
    ['uniquelocal, 203.0.113.7', '172.31.0.1', true],
    ['uniquelocal, 203.0.113.7', '203.0.113.7', true],
    ['uniquelocal, 203.0.113.7', '203.0.113.8', false],
    ['10.0.0.0/255.255.0.0', '10.0.7.1', true],
    ['10.0.0.0/255.255.0.0', '10.1.0.1', false],
    ['::ffff:10.0.0.0/104', '10.0.7.1', true],
    ['::ffff:10.0.0.0/104', '11.0.0.1', false],
    ['2001:db8::/32', '2001:db8:1::1', true],
    ['2001:db8::/32', '2001:db9::1', false],
    ['loopback', undefined, true],
    [true, '203.0.113.1', true],
    [false, '127.0.0.1', false],
    [false, undefined, true],
  ])('TRUST_PROXY %s trusts the address %s: %s', (trust, address, isTrusted) => {
    expect(parseTrustedProxies(trust)(address)).toBe(isTrusted)
  })
})
