import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** Instructions for the pods. They reply with what they have seen; the reply to `wait` follows when all have arrived. */
export type ScriptedPodsTask =
  /** Something new comes to all of them: those at these places take it and never answer. */
  | { readonly task: 'begin'; readonly hanging: readonly number[] }
  /** Until the others have answered as often as there are others. */
  | { readonly task: 'wait' }
  /** Those that hang close the connection instead, from now on. */
  | { readonly task: 'hang up' }
  | { readonly task: 'tell' }

/** At which ports they listen; said once, before anything else. */
export interface ScriptedPodsReady {
  readonly ports: readonly number[]
}

/** What they have seen since it began. */
export interface ScriptedPodsSaw {
  /** Number of requests to each pod, in the order of the ports. */
  readonly asked: readonly number[]
  /** Everything that came, each of the same once. */
  readonly bodies: readonly string[]
}

const PODS = 1_000

/** A process of its own, so that its work does not count as the pod's. */
let asked = emptyCounts()
let bodies = new Set<string>()
let hanging: ReadonlySet<number> = new Set()
let isHangingUp = false
let answered = 0
let tellOfAll = () => {}
const open = new Set<ServerResponse>()

process.on('message', async (wish: ScriptedPodsTask) => {
  if (wish.task === 'begin') begin(wish.hanging)
  if (wish.task === 'wait') await allHaveIt()
  if (wish.task === 'hang up') hangUp()
  const saw: ScriptedPodsSaw = { asked, bodies: [...bodies] }
  process.send?.(saw)
})

const servers = Array.from({ length: PODS }, (_, index) =>
  createServer((request, response) => take(index, request, response)).listen(0, '127.0.0.1'),
)
await Promise.all(servers.map((server) => new Promise((resolve) => server.once('listening', resolve))))
const ready: ScriptedPodsReady = { ports: servers.map((server) => (server.address() as AddressInfo).port) } // they listen on ports
process.send?.(ready)

function begin(hangingNow: readonly number[]): void {
  asked = emptyCounts()
  bodies = new Set()
  hanging = new Set(hangingNow)
  isHangingUp = false
  answered = 0
}

async function take(index: number, request: IncomingMessage, response: ServerResponse): Promise<void> {
  bodies.add(await text(request))
  asked[index] = (asked[index] ?? 0) + 1
  if (hanging.has(index)) {
    if (isHangingUp) response.destroy()
    else open.add(response)
    return
  }
  // Between two posts minutes pass, and no connection outlives them: each post has to open its own.
  response.writeHead(202, { connection: 'close' }).end()
  answered += 1
  if (haveAllIt()) tellOfAll()
}

async function allHaveIt(): Promise<void> {
  await new Promise<void>((resolve) => {
    tellOfAll = resolve
    if (haveAllIt()) resolve()
  })
}

function haveAllIt(): boolean {
  return answered >= PODS - hanging.size
}

function hangUp(): void {
  isHangingUp = true
  for (const response of open) response.destroy()
  open.clear()
}

function emptyCounts(): number[] {
  return Array.from({ length: PODS }, () => 0)
}
