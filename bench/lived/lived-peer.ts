import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Ports of the pods that this process simulates. */
export interface PeerReady {
  readonly ports: readonly number[]
}

/** Requests that the pods have received since the last reset. */
export interface PeerReceived {
  /** Requests to `/receive/users`: participations. */
  readonly private: number
  /** Requests to `/receive/public`: relayed comments and likes. */
  readonly public: number
  /** Time of the last request, in milliseconds since 1970. */
  readonly lastAt: number
}

/** The reply to both messages is `PeerReceived`, before a reset. */
export type PeerTask = 'reset' | 'report'

const PODS = 4

/** This file runs as a separate process, so that its processor time does not count as the pod's. Each request gets a 202. */
let received = { private: 0, public: 0, lastAt: Date.now() }

process.on('message', (task: PeerTask) => {
  process.send?.(received satisfies PeerReceived)
  if (task === 'reset') received = { private: 0, public: 0, lastAt: Date.now() }
})

const servers = Array.from({ length: PODS }, () =>
  createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      response.writeHead(202).end()
      received[request.url === '/receive/public' ? 'public' : 'private'] += 1
      received.lastAt = Date.now()
    })
  }).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: PeerReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)
