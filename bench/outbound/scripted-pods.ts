import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** Messages to the pods. The reply to each is `ScriptedPodsReport`. */
export type ScriptedPodsTask =
  /** Starts a new count. The pods at these indexes accept requests and never respond. */
  | { readonly task: 'begin'; readonly hanging: readonly number[] }
  /** The reply follows when all other pods have responded. */
  | { readonly task: 'wait' }
  /** Hanging pods close their connections from now on. */
  | { readonly task: 'hang up' }
  | { readonly task: 'report' }

/** Ports of the pods; the first message of this process. */
export interface ScriptedPodsReady {
  readonly ports: readonly number[]
}

/** Requests since `begin`. */
export interface ScriptedPodsReport {
  /** Number of requests to each pod, in the order of the ports. */
  readonly requestCounts: readonly number[]
  /** The distinct bodies of all requests. */
  readonly bodies: readonly string[]
}

const PODS = 1_000

/** This file runs as a separate process, so that its processor time does not count as the pod's. */
let requestCounts = emptyCounts()
let bodies = new Set<string>()
let hanging: ReadonlySet<number> = new Set()
let isHangingUp = false
let responses = 0
let resolveWait = () => {}
const unanswered = new Set<ServerResponse>()

process.on('message', async (message: ScriptedPodsTask) => {
  if (message.task === 'begin') begin(message.hanging)
  if (message.task === 'wait') await waitForAll()
  if (message.task === 'hang up') hangUp()
  process.send?.({ requestCounts, bodies: [...bodies] } satisfies ScriptedPodsReport)
})

const servers = Array.from({ length: PODS }, (_, index) =>
  createServer((request, response) => receive(index, request, response)).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: ScriptedPodsReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)

function begin(hangingNow: readonly number[]): void {
  requestCounts = emptyCounts()
  bodies = new Set()
  hanging = new Set(hangingNow)
  isHangingUp = false
  responses = 0
}

async function receive(index: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  bodies.add(await text(request))
  requestCounts[index] = (requestCounts[index] ?? 0) + 1
  if (hanging.has(index)) {
    if (isHangingUp) response.destroy()
    else unanswered.add(response)
    return
  }
  // Closes the connection, because between two posts of a user minutes pass.
  response.writeHead(202, { connection: 'close' }).end()
  responses += 1
  if (haveAllResponded()) resolveWait()
}

async function waitForAll(): Promise<void> {
  await new Promise<void>((resolve) => {
    resolveWait = resolve
    if (haveAllResponded()) resolve()
  })
}

function haveAllResponded(): boolean {
  return responses >= PODS - hanging.size
}

function hangUp(): void {
  isHangingUp = true
  for (const response of unanswered) response.destroy()
  unanswered.clear()
}

function emptyCounts(): number[] {
  return Array.from({ length: PODS }, () => 0)
}
