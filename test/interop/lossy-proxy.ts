import { connect, createServer, type Server, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'

/** What happens to one delivery on its way. */
type Outcome = 'passed' | 'request lost' | 'answer lost'

export interface LossyProxy {
  readonly port: number
  /** How many deliveries met each outcome. */
  readonly outcomes: Readonly<Record<Outcome, number>>
  /** Nothing gets through any more: connections end and new ones are refused. */
  disconnect(): Promise<void>
  reconnect(): Promise<void>
  close(): Promise<void>
}

/** Two of five deliveries are lost, half of them after they have arrived; everything is delayed by up to this. */
const LOST_OF_HUNDRED = 40
const MAX_DELAY_MS = 60

/** A proxy in front of a pod that delays all traffic and loses deliveries, or only their answers. The same seed loses the same. */
export async function openLossyProxy(port: number, targetPort: number, seed: number): Promise<LossyProxy> {
  const random = randomNumbers(seed)
  const outcomes = { passed: 0, 'request lost': 0, 'answer lost': 0 }
  const sockets = new Set<Socket>()

  function outcomeFor(data: Buffer): Outcome {
    if (!data.subarray(0, 13).equals(Buffer.from('POST /receive'))) return 'passed'
    const number = random() * 100
    const outcome = number >= LOST_OF_HUNDRED ? 'passed' : number < LOST_OF_HUNDRED / 2 ? 'request lost' : 'answer lost'
    outcomes[outcome] += 1
    return outcome
  }

  const server = createServer((near) => {
    const far = connect(targetPort, '127.0.0.1')
    let losesAnswer = false
    let way = Promise.resolve()
    const inOrder = (step: () => void) => {
      way = way.then(async () => {
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
      losesAnswer ||= outcome === 'answer lost'
      inOrder(() => (outcome === 'request lost' ? near.destroy() : far.write(data)))
    })
    far.on('data', (data) => inOrder(() => (losesAnswer ? near.destroy() : near.write(data))))
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
