import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Ports of the pods that this process plays. */
export interface PeerReady {
  readonly ports: readonly number[]
}

/** What they have received since the last reset. */
export interface PeerReceived {
  /** Requests to `/receive/users`: participations. */
  readonly private: number
  /** Requests to `/receive/public`: relayed comments and likes. */
  readonly public: number
  /** When the last one arrived; milliseconds since 1970. */
  readonly lastAt: number
}

/** The reply to both is what was received until then. */
export type PeerTask = 'reset' | 'report'

const PODS = 4

/** A process of its own, so that its work does not count as the pod's. Accepts each message with 202. */
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
