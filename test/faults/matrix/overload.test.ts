import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { callApi, publish, statusesIn } from './senders.js'
import { store } from './this-run.js'

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
})
afterAll(() => podUnderFaults?.close())

function connectTo(base: string): Socket {
  const socket = connect(Number(new URL(base).port), '127.0.0.1')
  socket.on('error', () => {})
  return socket.resume()
}

it('F33: five hundred clients send their requests byte by byte', async () => {
  const [{ base } = { base: '' }] = podUnderFaults.processes.web
  const sockets = Array.from({ length: 500 }, () => connectTo(base))
  const drip = setInterval(() => {
    for (const [index, socket] of sockets.entries()) {
      if (!socket.writable) continue
      if (socket.bytesWritten > 0) socket.write('a')
      else if (index % 2 === 0) socket.write('GET / HTTP/1.1\r\nx-slow: ')
      else socket.write('POST /receive/public HTTP/1.1\r\nhost: pod.example\r\ncontent-length: 100000\r\n\r\n')
    }
  }, 1_000)
  const statuses = new Set<unknown>()
  try {
    await until('all slow connections are closed', 60_000, async () => {
      const written = await publish(podUnderFaults, podUnderFaults.alice, base)
      const { response } = await callApi(base, podUnderFaults.alice, { method: 'GET', path: '/streams/main' })
      for (const status of statusesIn([written, response])) statuses.add(status)
      return sockets.every((socket) => socket.closed)
    })
  } finally {
    clearInterval(drip)
    for (const socket of sockets) socket.destroy()
  }

  // An overloaded pod may respond 503 with Retry-After.
  const expected: readonly unknown[] = [200, 503]
  expect([...statuses].filter((status) => !expected.includes(status))).toEqual([])
  expect(statuses).toContain(200)
})

/** False: the program is not installed. */
function limitDescriptors(pid: number): boolean {
  try {
    execFileSync('prlimit', ['--pid', `${pid}`, '--nofile=256'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

it('F34: connections exceed the file descriptors', async ({ skip }) => {
  const [{ base, pid } = { base: '', pid: 0 }] = podUnderFaults.processes.web
  if (!limitDescriptors(pid)) return skip('prlimit is not installed')
  const sockets = Array.from({ length: 1_000 }, () => connectTo(base))
  await Promise.all(sockets.map((socket) => Promise.race([once(socket, 'connect'), once(socket, 'close')])))
  await until('the other process responds', 30_000, async () => {
    return (await publish(podUnderFaults, podUnderFaults.alice, podUnderFaults.processes.web[1]?.base)).status === 200
  })
  for (const socket of sockets) socket.destroy()

  await until(
    'the process responds again',
    30_000,
    async () => (await publish(podUnderFaults, podUnderFaults.alice, base)).status === 200,
  )
  expect(process.kill(pid, 0)).toBe(true)
})
