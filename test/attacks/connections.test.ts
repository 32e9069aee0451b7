import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { buildPod } from '../support/pods/build-pod.js'

const REQUEST = 'GET /health/live HTTP/1.1\r\nhost: pod.example\r\n\r\n'
const CONNECTIONS = 2_200
const NEWCOMERS = 10
const NEWCOMERS_WITHIN_MS = 5_000

/** A whole web process that listens on a port, with the settings of the product. */
async function listen(trustProxy: string): Promise<number> {
  const pod = await buildPod({ environment: { TRUST_PROXY: trustProxy } })
  onTestFinished(() => pod.close())
  await pod.app.listen({ host: '127.0.0.1', port: 0 })
  return (pod.app.server.address() as AddressInfo).port
}

/** One of the attacker's connections after its first request, for which the client keeps it open. */
async function openIdleConnection(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  const isSettled = Promise.race([once(socket, 'data'), once(socket, 'close')])
  socket.write(REQUEST)
  await isSettled.catch(() => undefined)
  return socket
}

async function openIdleConnections(port: number, addresses: readonly string[]): Promise<readonly Socket[]> {
  const sockets: Socket[] = []
  for (let count = 0; count < CONNECTIONS; count += 50) {
    const opened = Array.from({ length: 50 }, (_, index) =>
      openIdleConnection(port, addresses[(count + index) % addresses.length] ?? ''),
    )
    sockets.push(...(await Promise.all(opened)))
  }
  return sockets
}

/** The status of each new client, each on a connection of its own; 0: no answer in time. */
async function statusesOfNewcomers(port: number): Promise<readonly number[]> {
  const agent = new Agent({ keepAlive: false })
  const newcomers = Array.from(
    { length: NEWCOMERS },
    (_, index) =>
      new Promise<number>((resolve) => {
        const localAddress = `127.0.1.${index + 1}`
        const request = get({ port, host: '127.0.0.1', path: '/health/live', localAddress, agent }, (answer) => {
          answer.resume()
          resolve(answer.statusCode ?? 0)
        })
        request.setTimeout(NEWCOMERS_WITHIN_MS, () => request.destroy())
        request.on('error', () => resolve(0))
      }),
  )
  return Promise.all(newcomers)
}

const ALL_SERVED = Array<number>(NEWCOMERS).fill(200)

it('S87: one address with 2 200 connections keeps at most 200 of them, and new clients are served', async () => {
  const port = await listen('false')

  const sockets = await openIdleConnections(port, ['127.0.0.1'])

  expect(await statusesOfNewcomers(port)).toEqual(ALL_SERVED)
  expect(sockets.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(200)
})

it('S87: eleven addresses with 200 connections each do not keep new clients out', async () => {
  const port = await listen('false')
  const addresses = Array.from({ length: 11 }, (_, index) => `127.0.0.${index + 1}`)

  await openIdleConnections(port, addresses)

  expect(await statusesOfNewcomers(port)).toEqual(ALL_SERVED)
})

it('S87: 2 200 idle connections of a trusted proxy do not keep new clients out', async () => {
  const port = await listen('loopback')

  await openIdleConnections(port, ['127.0.0.1'])

  expect(await statusesOfNewcomers(port)).toEqual(ALL_SERVED)
})
