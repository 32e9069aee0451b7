import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Ports of the pods that this process plays. */
export interface SubscribingPodsReady {
  readonly ports: readonly number[]
}

/** Starts a new count. The reply is `expecting`, and `DeliveredDeliveries` once this number of deliveries has been answered. */
export interface ExpectedDeliveries {
  readonly deliveries: number
  /** Indexes of the pods that accept requests and never answer. */
  readonly hanging: readonly number[]
  /** Those pods close the connection instead. */
  readonly hangUp?: boolean
  /** The pods do not keep connections open after an answer. */
  readonly closesConnections: boolean
}

export interface DeliveredDeliveries {
  /** Index of the pod and time of each answer, in milliseconds since 1970. */
  readonly answers: readonly (readonly [number, number])[]
}

const PODS = Number(process.env['PODS'] ?? 1_000)

/** A process of its own, so that its work does not count as the pod's. */
let expected: ExpectedDeliveries = { deliveries: Number.POSITIVE_INFINITY, hanging: [], closesConnections: true }
let hanging: ReadonlySet<number> = new Set()
let answers: [number, number][] = []
const unanswered = new Set<ServerResponse>()

process.on('message', (next: ExpectedDeliveries) => {
  expected = next
  hanging = new Set(next.hanging)
  answers = []
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
    answers.push([index, Date.now()])
    if (answers.length === expected.deliveries) process.send?.({ answers } satisfies DeliveredDeliveries)
  })
}
