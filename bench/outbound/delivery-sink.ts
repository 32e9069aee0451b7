import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Ports of simulated pods that accept every delivery. */
export interface SinkReady {
  readonly ports: readonly number[]
}

/** Message to the sink: the number of deliveries to expect from now on; without a number, a request for the count. */
export interface SinkTask {
  readonly expect?: number
}

/** Sent when all expected deliveries have arrived, and on request. */
export interface SinkCount {
  readonly received: number
}

const PORTS = 200

/** This file runs as a separate process, so that its processor time does not count as the pod's. */
let received = 0
let expected = Number.POSITIVE_INFINITY

process.on('message', ({ expect }: SinkTask) => {
  if (expect === undefined) return sendCount()
  received = 0
  expected = expect
})

const servers = Array.from({ length: PORTS }, () =>
  createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(202).end()
      received += 1
      if (received === expected) sendCount()
    })
  }).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: SinkReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)

function sendCount(): void {
  const count: SinkCount = { received }
  process.send?.(count)
}
