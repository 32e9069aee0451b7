import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** The outcome of one delivery. */
type Outcome = 'passed' | 'request lost' | 'response lost'

export interface LossyProxy {
  readonly port: number
  /** Number of deliveries by outcome. */
  readonly outcomes: Readonly<Record<Outcome, number>>
  /** Closes all connections and refuses new ones. */
  disconnect(): Promise<void>
  reconnect(): Promise<void>
  close(): Promise<void>
}

/** Percentage of lost deliveries. Half of them lose only their response. */
const LOST_PERCENT = 40
const MAX_DELAY_MS = 60

/** Opens a proxy that delays all traffic, and loses deliveries or their responses. Equal seeds lose the same deliveries. */
export async function openLossyProxy(port: number, targetPort: number, seed: number): Promise<LossyProxy> {
  const random = randomNumbers(seed)
  const outcomes = { passed: 0, 'request lost': 0, 'response lost': 0 }
  const sockets = new Set<Socket>()

  function outcomeFor(data: Buffer): Outcome {
    if (!data.subarray(0, 13).equals(Buffer.from('POST /receive'))) return 'passed'
    const number = random() * 100
    const outcome = number >= LOST_PERCENT ? 'passed' : number < LOST_PERCENT / 2 ? 'request lost' : 'response lost'
    outcomes[outcome] += 1
    return outcome
  }

  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1')
    let losesResponse = false
    let previousStep = Promise.resolve()
    const inOrder = (step: () => void) => {
      previousStep = previousStep.then(async () => {
        await pause(random() * MAX_DELAY_MS)
        step()
      })
    }
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => undefined) // 'close' follows
      socket.on('close', () => {
        sockets.delete(socket)
        near.destroy()
        far.destroy()
      })
    }
    near.on('data', (data) => {
      const outcome = outcomeFor(data)
      losesResponse ||= outcome === 'response lost'
      inOrder(() => (outcome === 'request lost' ? near.destroy() : far.write(data)))
    })
    far.on('data', (data) => inOrder(() => (losesResponse ? near.destroy() : near.write(data))))
  })
  await listen(server, port)

  async function disconnect(): Promise<void> {
    const closed = new Promise((resolve) => server.close(resolve))
    for (const socket of sockets) socket.destroy()
    await closed
  }
  return {
    port,
    outcomes,
    disconnect,
    reconnect: () => listen(server, port),
    close: () => (server.listening ? disconnect() : Promise.resolve()),
  }
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** Numbers from 0 to 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
