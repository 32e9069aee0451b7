import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Ports of the pods that this process simulates. */
export interface SubscribingPodsReady {
  readonly ports: readonly number[]
}

/** Starts a new count. The reply is `expecting`, and `DeliveryResponses` once this number of deliveries has a response. */
export interface ExpectedDeliveries {
  readonly deliveries: number
  /** Indexes of the pods that accept requests and never respond. */
  readonly hanging: readonly number[]
  /** Whether the hanging pods close their connections. */
  readonly hangUp?: boolean
  /** Whether the pods close the connection after a response. */
  readonly closesConnections: boolean
}

/** Sent when all expected deliveries have a response. */
export interface DeliveryResponses {
  /** Index of the pod and time of each response, in milliseconds since 1970. */
  readonly responses: readonly (readonly [number, number])[]
}

const PODS = Number(process.env['PODS'] ?? 1_000)

/** This file runs as a separate process, so that its processor time does not count as the pod's. */
let expected: ExpectedDeliveries = { deliveries: Number.POSITIVE_INFINITY, hanging: [], closesConnections: true }
let hanging: ReadonlySet<number> = new Set()
let responses: [number, number][] = []
const unanswered = new Set<ServerResponse>()

process.on('message', (next: ExpectedDeliveries) => {
  expected = next
  hanging = new Set(next.hanging)
  responses = []
  for (const response of unanswered) response.destroy()
  unanswered.clear()
  process.send?.('expecting')
})

const servers = Array.from({ length: PODS }, (_, index) =>
  createServer((request, response) => receive(index, request, response)).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: SubscribingPodsReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)

function receive(index: number, request: IncomingMessage, response: ServerResponse): void {
  request.resume()
  request.on('end', () => {
    if (hanging.has(index)) {
      if (expected.hangUp === true) response.destroy()
      else unanswered.add(response)
      return
    }
    response.writeHead(202, expected.closesConnections ? { connection: 'close' } : {}).end()
    responses.push([index, Date.now()])
    if (responses.length === expected.deliveries) process.send?.({ responses } satisfies DeliveryResponses)
  })
}
