import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Pods that take everything: one on each port. */
export interface SinkReady {
  readonly ports: readonly number[]
}

/** Message to the sink: the number of deliveries to expect from now on; without a number, a request for the count. */
export interface SinkTask {
  readonly expect?: number
}

/** Sent when all expected deliveries have arrived, and on request. */
export interface SinkCount {
  readonly taken: number
}

const PORTS = 200

/** A process of its own, so that its work does not count as the pod's. */
let taken = 0
let expected = Number.POSITIVE_INFINITY

process.on('message', ({ expect }: SinkTask) => {
  if (expect === undefined) return tell()
  taken = 0
  expected = expect
})

const servers = Array.from({ length: PORTS }, () =>
  createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(202).end()
      taken += 1
      if (taken === expected) tell()
    })
  }).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: SinkReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)

function tell(): void {
  const count: SinkCount = { taken }
  process.send?.(count)
}
