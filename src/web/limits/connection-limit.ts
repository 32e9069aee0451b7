import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { networkOfAddress, siteOfNetwork } from '../../networks/network-source.js'
import type { HttpLimits } from '../server/limits.js'

/**
 * Why a connection is closed: its address has too many, it was idle while others need a place, or all places are in use.
 */
export type ConnectionClosure = 'address_limit' | 'idle' | 'all_in_use'

export interface ConnectionLimitOptions {
  readonly limits: Pick<
    HttpLimits,
    'connections' | 'connectionsOfAddress' | 'connectionsOfSite' | 'connectionsFilledPercent'
  >
  /** A proxy has the connections of many clients, so only the limit of all connections counts for it. */
  isTrustedProxy(address: string | undefined): boolean
  countClosure(reason: ConnectionClosure): void
}

/** An IPv4 address, an IPv6 /64, or all /64 networks of an IPv6 /48 together. */
interface Network {
  readonly isProxy: boolean
  readonly sockets: Set<Socket>
  /** Connections without a running request, the longest idle first. */
  readonly idle: Set<Socket>
}

/**
 * Keeps places free for new clients. Without this, one address that sends a small request a minute on each of its connections
 * occupies all of them, and no other client can connect.
 */
export function limitConnections(server: Server, options: ConnectionLimitOptions): void {
  const { limits, isTrustedProxy, countClosure } = options
  const filledConnections = Math.floor((limits.connections * limits.connectionsFilledPercent) / 100)
  const networks = new Map<string, Network>()
  const networksOfSocket = new WeakMap<Socket, readonly (readonly [string, Network])[]>()
  const requestsUnderWay = new WeakMap<Socket, number>()
  let total = 0

  server.maxConnections = limits.connections
  server.on('drop', () => countClosure('all_in_use'))
  server.on('connection', (socket: Socket) => {
    const ip = socket.remoteAddress ?? ''
    const site = siteOfNetwork(ip)
    const isProxy = isTrustedProxy(socket.remoteAddress)
    const address = open(networkOfAddress(ip), isProxy)
    // The connections of a proxy do not count for its /48: they belong to many clients.
    const networksOfIp = site === undefined || isProxy ? [address] : [address, open(site, false)]
    for (const [, { sockets }] of networksOfIp) sockets.add(socket)
    networksOfSocket.set(socket, networksOfIp)
    total += 1
    socket.once('close', () => remove(socket))

    const limitOf = [limits.connectionsOfAddress, limits.connectionsOfSite]
    const overLimit = networksOfIp.find(
      ([, network], index) => !network.isProxy && network.sockets.size > (limitOf[index] ?? 0),
    )
    if (overLimit) close(findLongestIdle(overLimit[1]) ?? socket, 'address_limit')
    else if (total > filledConnections) closeIdleOfLargestNetwork()
    // Last, so that the new connection is never closed for being idle.
    setIdle(socket)
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    if (!networksOfSocket.has(socket)) return
    requestsUnderWay.set(socket, (requestsUnderWay.get(socket) ?? 0) + 1)
    for (const [, { idle }] of networksOfSocket.get(socket) ?? []) idle.delete(socket)
    response.once('close', () => {
      const remainingRequests = (requestsUnderWay.get(socket) ?? 1) - 1
      requestsUnderWay.set(socket, remainingRequests)
      if (remainingRequests === 0) setIdle(socket)
    })
  })

  function open(name: string, isProxy: boolean): readonly [string, Network] {
    const network = networks.get(name) ?? { isProxy, sockets: new Set<Socket>(), idle: new Set<Socket>() }
    networks.set(name, network)
    return [name, network]
  }

  /** A closed connection has left its network and is not added again. */
  function setIdle(socket: Socket): void {
    for (const [, { sockets, idle }] of networksOfSocket.get(socket) ?? []) if (sockets.has(socket)) idle.add(socket)
  }

  /** Connections of proxies are closed last: a proxy may be about to send a request of a client on one. */
  function closeIdleOfLargestNetwork(): void {
    let largest: Network | undefined
    for (const network of networks.values()) {
      if (network.idle.size > 0 && (largest === undefined || isBefore(network, largest))) largest = network
    }
    const socket = largest && findLongestIdle(largest)
    if (socket !== undefined) close(socket, 'idle')
  }

  function close(socket: Socket, reason: ConnectionClosure): void {
    countClosure(reason)
    remove(socket) // at once: a destroyed socket reports its end later
    socket.destroy()
  }

  function remove(socket: Socket): void {
    const networksOfClosed = networksOfSocket.get(socket)
    if (networksOfClosed === undefined) return
    networksOfSocket.delete(socket)
    total -= 1
    for (const [name, network] of networksOfClosed) {
      network.sockets.delete(socket)
      network.idle.delete(socket)
      if (network.sockets.size === 0 && networks.get(name) === network) networks.delete(name)
    }
  }
}

function isBefore(one: Network, other: Network): boolean {
  return one.isProxy === other.isProxy ? one.sockets.size > other.sockets.size : other.isProxy
}

function findLongestIdle({ idle }: Network): Socket | undefined {
  const [socket] = idle
  return socket
}
