import type { ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { dispatchJob } from '../../src/jobs/definitions.js'
import { isIdle } from '../../src/jobs/operations/work-status.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import type { PodCrypto } from '../../src/services/pod-crypto.js'
import type { Services } from '../../src/services/services.js'
import { median, type Result } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { BenchStores, QueueStoreName } from '../machine/bench-stores.js'
import { forkFile, nextMessage } from '../machine/child-process.js'
import { type Author, addAuthor, addPosts } from './author.js'
import { type DeliveryCost, measureDeliveries, type Round, resultOf } from './delivery-rounds.js'
import type { ScriptedPodsReady, ScriptedPodsReport, ScriptedPodsTask } from './scripted-pods.js'

/** One of ten pods hangs. */
const HANGING_INTERVAL = 10

interface FanoutSetting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly rounds: number
  /** Returns the number of envelopes that were signed until now. */
  readonly countSigned: () => number
}

interface Fanout extends FanoutSetting {
  readonly services: Services
  readonly author: Author
  readonly scriptedPods: ChildProcess
  readonly ports: readonly number[]
  /** Indexes of the ports of hanging pods: every tenth, so that deliveries to them are between those to the others. */
  readonly hanging: readonly number[]
}

/** History of the hanging pods: they are known to hang, have always responded before, or are new. */
type PodHistory = 'known' | 'proven' | 'new'

const HISTORY_LABELS: Readonly<Record<PodHistory, string>> = {
  known: '10 % known to hang',
  proven: '10 % begin to hang',
  new: '10 % new and hang',
}

interface PostMeasurement {
  readonly cost: DeliveryCost
  readonly isComplete: boolean
}

/** Wraps the crypto functions and counts signed envelopes. */
export function countSignatures(crypto: PodCrypto): { readonly crypto: PodCrypto; readonly countSigned: () => number } {
  let signed = 0
  return {
    countSigned: () => signed,
    crypto: {
      ...crypto,
      signEnvelopes(messages) {
        signed += messages.length
        return crypto.signEnvelopes(messages)
      },
    },
  }
}

/**
 * A post to a thousand pods, of which a tenth accepts it and never responds: the time until all others have it. Compared with a post
 * to the same pods when all respond.
 */
export async function measureHangingPods(services: Services, setting: FanoutSetting): Promise<readonly Result[]> {
  const scriptedPods = forkFile('outbound/scripted-pods')
  try {
    const { ports } = await nextMessage<ScriptedPodsReady>(scriptedPods)
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const author = await addAuthor(services, { author: 'eve', peopleOnEachPod: 1, bits: 2048 }, ports, publicKey)
    await services.db.raw('analyze')
    const hanging = [...ports.keys()].filter((index) => index % HANGING_INTERVAL === 0)
    return await measureRounds({ ...setting, services, author, scriptedPods, ports, hanging })
  } finally {
    scriptedPods.kill()
  }
}

async function measureRounds(fanout: Fanout): Promise<readonly Result[]> {
  const measuredRounds: Record<PodHistory, Round[]> = { known: [], proven: [], new: [] }
  await resetPods(fanout, 'proven')
  await measurePost({ ...fanout, hanging: [] }, 'proven') // warms up: statements, the compiler of the JavaScript engine
  for (let round = 0; round < fanout.rounds; round += 1) {
    await resetPods(fanout, 'new')
    const ofNew = await measurePost(fanout, 'new')
    await resetPods(fanout, 'proven')
    const ofProven = await measurePost(fanout, 'proven')
    const ofKnown = await measurePost(fanout, 'known')
    await resetPods(fanout, 'proven')
    const bare = await measurePost({ ...fanout, hanging: [] }, 'proven') // next to `known`, the case with a floor
    measuredRounds.known.push(compareWithBare(bare, ofKnown))
    measuredRounds.proven.push(compareWithBare(bare, ofProven))
    measuredRounds.new.push(compareWithBare(bare, ofNew))
  }
  return [
    resultOfCase(fanout, 'known', measuredRounds.known),
    resultOfCase(fanout, 'proven', measuredRounds.proven),
    resultOfCase(fanout, 'new', measuredRounds.new),
  ]
}

function compareWithBare(bare: PostMeasurement, { cost, isComplete }: PostMeasurement): Round {
  return { subject: cost, bare: bare.cost, isComplete: isComplete && bare.isComplete }
}

function resultOfCase({ queue }: Fanout, history: PodHistory, rounds: readonly Round[]): Result {
  // Only known hanging pods have a floor: the first post also pays for their detection.
  const floor = history === 'known' ? FLOORS.hanging[queue] : undefined
  const milliseconds = (way: 'subject' | 'bare') =>
    Math.round(median(rounds.map((round) => round[way].seconds)) * 1_000)
  return {
    ...resultOf(`fan-out, ${HISTORY_LABELS[history]}, ${queue}`, rounds, floor),
    more: { milliseconds: milliseconds('subject'), if_none_hangs: milliseconds('bare') },
  }
}

/** Resets the pods: no pending deliveries, no failures, and a recent response of all but the new ones. */
async function resetPods({ services, ports, hanging }: Fanout, history: 'proven' | 'new'): Promise<void> {
  await services.db('deliveries').delete()
  await services
    .db('pods')
    .whereIn('port', [...ports])
    .update({ failures: 0, nextTryAt: null, offlineSince: null, lastSuccessAt: new Date() })
  if (history === 'proven') return
  await services.db('pods').whereIn('port', portsAt(ports, hanging)).update({ lastSuccessAt: null })
}

/** Measures until every responding pod has the post. Hanging pods hang until then, and are released afterwards. */
async function measurePost(fanout: Fanout, history: PodHistory): Promise<PostMeasurement> {
  const { services, stores, author, scriptedPods, ports, hanging, countSigned } = fanout
  const signedBefore = countSigned()
  await runTask(scriptedPods, { task: 'begin', hanging })
  const posts = await addPosts(services, author, { public: true, posts: 1 })
  const cost = await measureDeliveries(ports.length - hanging.length, stores, async () => {
    const arrived = runTask(scriptedPods, { task: 'wait' })
    await services.db.transaction((transaction) => enqueueJobsOfKind(services, transaction, dispatchJob, posts))
    await arrived
  })
  await runTask(scriptedPods, { task: 'hang up' })
  while (!(await isIdle(services, ['outbound', 'outbound-slow']))) {
    // each check waits for the database and the queue
  }
  const report = await runTask(scriptedPods, { task: 'report' })
  const isComplete =
    countSigned() - signedBefore === 1 &&
    haveExpectedRequests(report, hanging, history) &&
    (await isSignedEnvelope(services, report)) &&
    (await onlyHangingPodsWait(fanout, history))
  return { cost, isComplete }
}

/** Responding pods got exactly one request; hanging pods got requests unless they are known to hang. */
function haveExpectedRequests(
  { requestCounts }: ScriptedPodsReport,
  hanging: readonly number[],
  history: PodHistory,
): boolean {
  const hang = new Set(hanging)
  return requestCounts.every((count, index) => (hang.has(index) ? count > 0 === (history !== 'known') : count === 1))
}

/** Whether every request had the body that the pod has signed. */
async function isSignedEnvelope({ db }: Services, { bodies }: ScriptedPodsReport): Promise<boolean> {
  const { envelope } = await db('outboundMessages').orderBy('id', 'desc').first('envelope')
  return bodies.length === 1 && bodies[0] === envelope
}

/** Whether all remaining deliveries are to hanging pods, with one failure and a next attempt in the future. */
async function onlyHangingPodsWait({ services, ports, hanging }: Fanout, history: PodHistory): Promise<boolean> {
  const { rows } = await services.db.raw(
    `select count(*) as left, count(*) filter (
       where state = 'waiting' and port = any(?) and failures = 1 and next_try_at > now()
     ) as waiting
     from deliveries join pods on pods.id = deliveries.pod_id`,
    [portsAt(ports, hanging)],
  )
  const [{ left, waiting }] = rows
  const posts = history === 'known' ? 2 : 1
  return left === waiting && waiting === hanging.length * posts
}

function portsAt(ports: readonly number[], places: readonly number[]): number[] {
  return places.flatMap((place) => ports[place] ?? [])
}

async function runTask(scriptedPods: ChildProcess, task: ScriptedPodsTask): Promise<ScriptedPodsReport> {
  const report = nextMessage<ScriptedPodsReport>(scriptedPods)
  scriptedPods.send(task)
  return report
}
