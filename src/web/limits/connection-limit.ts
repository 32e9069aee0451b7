import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { HttpLimits } from '../../limits.js'
import { sourceOf } from '../../networks/network-source.js'

/**
 * Why a connection is closed: its address has too many, it was idle and others need the place, or there is no place at all.
 */
export type ConnectionClosure = 'address_limit' | 'idle' | 'all_in_use'

export interface ConnectionLimitOptions {
  readonly limits: Pick<HttpLimits, 'connections' | 'connectionsOfAddress' | 'connectionsFilledPercent'>
  /** A proxy has the connections of many clients, so only the limit of all connections counts for it. */
  isTrustedProxy(address: string | undefined): boolean
  countClosure(reason: ConnectionClosure): void
}

interface Address {
  readonly isProxy: boolean
  readonly sockets: Set<Socket>
  /** Without a request under way; the longest idle first. */
  readonly idle: Set<Socket>
}

/**
 * Keeps places free for new clients. Without this, one address that sends a small request a minute on each of its connections
 * keeps all of them, and no other client can connect.
 */
export function limitConnections(server: Server, options: ConnectionLimitOptions): void {
  const { limits, isTrustedProxy, countClosure } = options
  const filled = Math.floor((limits.connections * limits.connectionsFilledPercent) / 100)
  const addresses = new Map<string, Address>()
  const addressOfSocket = new WeakMap<Socket, Address>()
  const requestsUnderWay = new WeakMap<Socket, number>()
  let total = 0

  server.maxConnections = limits.connections
  server.on('drop', () => countClosure('all_in_use'))
  server.on('connection', (socket: Socket) => {
    const source = sourceOf(socket.remoteAddress ?? '')
    const address = addresses.get(source) ?? openAddress(source, isTrustedProxy(socket.remoteAddress))
    address.sockets.add(socket)
    addressOfSocket.set(socket, address)
    total += 1
    socket.once('close', () => remove(source, address, socket))

    if (!address.isProxy && address.sockets.size > limits.connectionsOfAddress) {
      close(source, address, longestIdleOf(address) ?? socket, 'address_limit')
    } else if (total > filled) closeIdleOfLargestAddress()
    // Only now, so that the new connection is never the one that is closed for being idle.
    if (address.sockets.has(socket)) address.idle.add(socket)
  })
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    const address = addressOfSocket.get(socket)
    if (address === undefined) return
    requestsUnderWay.set(socket, (requestsUnderWay.get(socket) ?? 0) + 1)
    address.idle.delete(socket)
    response.once('close', () => {
      const left = (requestsUnderWay.get(socket) ?? 1) - 1
      requestsUnderWay.set(socket, left)
      if (left === 0 && address.sockets.has(socket)) address.idle.add(socket)
    })
  })

  function openAddress(source: string, isProxy: boolean): Address {
    const address = { isProxy, sockets: new Set<Socket>(), idle: new Set<Socket>() }
    addresses.set(source, address)
    return address
  }

  /** A connection of a proxy is closed last: the proxy may be about to send a request of one of its clients on it. */
  function closeIdleOfLargestAddress(): void {
    let largest: readonly [string, Address] | undefined
    for (const entry of addresses) {
      if (entry[1].idle.size > 0 && (largest === undefined || isBefore(entry[1], largest[1]))) largest = entry
    }
    if (largest === undefined) return
    const [source, address] = largest
    const socket = longestIdleOf(address)
    if (socket !== undefined) close(source, address, socket, 'idle')
  }

  function close(source: string, address: Address, socket: Socket, reason: ConnectionClosure): void {
    countClosure(reason)
    remove(source, address, socket) // at once: a destroyed socket reports its end later
    socket.destroy()
  }

  function remove(source: string, address: Address, socket: Socket): void {
    if (!address.sockets.delete(socket)) return
    address.idle.delete(socket)
    total -= 1
    if (address.sockets.size === 0 && addresses.get(source) === address) addresses.delete(source)
  }
}

function isBefore(one: Address, other: Address): boolean {
  return one.isProxy === other.isProxy ? one.sockets.size > other.sockets.size : other.isProxy
}

function longestIdleOf({ idle }: Address): Socket | undefined {
  const [socket] = idle
  return socket
}
