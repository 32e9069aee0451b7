import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Microseconds of processor time by step. */
export type StepTimes = Readonly<Record<string, number>>

/** The used fields of a CPU profile of V8. */
interface Profile {
  readonly nodes: readonly ProfileNode[]
  /** Microseconds of the monotonic clock. */
  readonly startTime: number
  /** The id of the node of each sample. */
  readonly samples: readonly number[]
  /** Microseconds between samples. */
  readonly timeDeltas: readonly number[]
}

interface ProfileNode {
  readonly id: number
  readonly callFrame: { readonly functionName: string; readonly url: string }
  readonly children?: readonly number[]
}

/** Steps of the tasks of the crypto threads, by function name. */
const TASKS: ReadonlyMap<string, string> = new Map([
  ['verifyEnvelopes', 'open'],
  ['decryptEnvelopes', 'decrypt'],
  ['signEnvelope', 'sign'],
  ['signEnvelopes', 'sign'],
  ['signRelayable', 'sign'],
  ['encryptEnvelopes', 'encrypt'],
])

/** Functions of an idle thread. */
const WAITING: ReadonlySet<string> = new Set(['(idle)', '(root)', 'atomicsWaitLoop'])

/** Steps by source file. The innermost matching frame decides. */
const FILES: readonly (readonly [RegExp, string])[] = [
  [
    /federation\/inbound\/(open|decrypt|find-signers|prepare|resolve|authorise|.*references)|workers\/threads\//,
    'open',
  ],
  [/notifications?|announcements/, 'notify'],
  [/federation\/outbound\/(dispatch|participat|.*-entities)|domain\/outbound|insert-deliveries/, 'dispatch'],
  [/federation\/outbound\/(prepare-deliveries|.*sign)|private-keys|services\/secrets/, 'sign'],
  [/federation\/(outbound|remote-pod)|persistence\/outbound|node_modules\/undici/, 'deliver'],
  [/federation\/inbound|persistence\/inbound|workers\/(inbound-runner|bisect)/, 'store'],
  [/src\/jobs\/|node_modules\/(bullmq|ioredis)|workers\/(run-job|start-workers|messages-of-job|job-)/, 'queue'],
]

/** Steps of libraries. They count only if no frame of the stack matches `FILES`. */
const LIBRARIES: readonly (readonly [RegExp, string])[] = [
  [/node_modules\/(pg|pg-protocol|pg-pool|knex|objection)\//, 'database client'],
  [/node_modules\/piscina\//, 'open'],
]

/** Processor time by step between two times of the monotonic clock, from the profiles of a process and its threads. */
export async function readStepTimes(folder: string, from: bigint, to: bigint): Promise<StepTimes> {
  const times = new Map<string, number>()
  for (const file of await readdir(folder)) {
    if (!file.endsWith('.cpuprofile')) continue
    addProfile(
      times,
      JSON.parse(await readFile(join(folder, file), 'utf8')),
      Number(from / 1_000n),
      Number(to / 1_000n),
    )
  }
  return Object.fromEntries([...times].sort(([, one], [, other]) => other - one))
}

function addProfile(times: Map<string, number>, profile: Profile, from: number, to: number): void {
  const steps = stepsOf(profile.nodes)
  let time = profile.startTime
  for (const [index, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[index] ?? 0
    time += delta
    const step = steps.get(id)
    if (step === undefined || time < from || time > to) continue
    times.set(step, (times.get(step) ?? 0) + delta)
  }
}

/** The step of each node. Idle nodes have none. */
function stepsOf(nodes: readonly ProfileNode[]): ReadonlyMap<number, string> {
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const steps = new Map<number, string>()
  for (const { id, callFrame } of nodes) {
    if (WAITING.has(callFrame.functionName)) continue
    steps.set(id, stepOf(stackOf(id, byId, parents)))
  }
  return steps
}

/** The call frames of a node, innermost first. */
function stackOf(
  id: number,
  byId: ReadonlyMap<number, ProfileNode>,
  parents: ReadonlyMap<number, number>,
): readonly ProfileNode['callFrame'][] {
  const stack: ProfileNode['callFrame'][] = []
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const node = byId.get(at)
    if (node !== undefined) stack.push(node.callFrame)
  }
  return stack
}

function stepOf(stack: readonly ProfileNode['callFrame'][]): string {
  const [leaf] = stack
  if (leaf?.functionName === '(garbage collector)') return 'garbage collection'
  for (const { functionName, url } of stack) {
    const task = url.includes('crypto-thread') ? TASKS.get(functionName) : undefined
    if (task !== undefined) return task
  }
  return firstMatch(stack, FILES) ?? firstMatch(stack, LIBRARIES) ?? 'other'
}

function firstMatch(
  stack: readonly ProfileNode['callFrame'][],
  table: readonly (readonly [RegExp, string])[],
): string | undefined {
  for (const { url } of stack) {
    const found = table.find(([pattern]) => pattern.test(url))
    if (found !== undefined) return found[1]
  }
  return undefined
}
