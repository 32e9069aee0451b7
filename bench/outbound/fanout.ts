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
import { forkFile, said } from '../machine/child-process.js'
import { type Author, addAuthor, addPosts } from './author.js'
import { type Round, resultOf, type Spent, spentOn } from './delivery-rounds.js'
import type { ScriptedPodsReady, ScriptedPodsSaw, ScriptedPodsTask } from './scripted-pods.js'

const ONE_HANGS_OF = 10

interface FanoutSetting {
  readonly queue: QueueStoreName
  readonly stores: BenchStores
  readonly rounds: number
  /** How many envelopes were signed until now. */
  readonly made: () => number
}

interface Fanout extends FanoutSetting {
  readonly services: Services
  readonly author: Author
  readonly others: ChildProcess
  readonly ports: readonly number[]
  /** The places of those among the ports that hang: every tenth, so that their turn comes among that of the others. */
  readonly hanging: readonly number[]
}

/** What the pod knows of those that hang: that they do, that they have always answered, or nothing. */
type Standing = 'known' | 'proven' | 'new'

const names: Readonly<Record<Standing, string>> = {
  known: '10 % known to hang',
  proven: '10 % begin to hang',
  new: '10 % new and hang',
}

interface Posted {
  readonly spent: Spent
  readonly isComplete: boolean
}

/** Lets it be known how often an envelope was signed. */
export function countSignatures(crypto: PodCrypto): { readonly crypto: PodCrypto; readonly made: () => number } {
  let made = 0
  return {
    made: () => made,
    crypto: {
      ...crypto,
      signEnvelopes(messages) {
        made += messages.length
        return crypto.signEnvelopes(messages)
      },
    },
  }
}

/**
 * Until a post is at all of a thousand pods that are well, when a tenth of the thousand takes it and never answers, beside a
 * post to the same pods that all answer.
 */
export async function measureHangingPods(services: Services, setting: FanoutSetting): Promise<readonly Result[]> {
  const others = forkFile('outbound/scripted-pods')
  try {
    const { ports } = await said<ScriptedPodsReady>(others)
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const author = await addAuthor(services, { author: 'eve', peopleOnEachPod: 1, bits: 2048 }, ports, publicKey)
    await services.db.raw('analyze')
    const hanging = [...ports.keys()].filter((index) => index % ONE_HANGS_OF === 0)
    return await measureRounds({ ...setting, services, author, others, ports, hanging })
  } finally {
    others.kill()
  }
}

async function measureRounds(fanout: Fanout): Promise<readonly Result[]> {
  const measured: Record<Standing, Round[]> = { known: [], proven: [], new: [] }
  await beginAnew(fanout, 'proven')
  await post({ ...fanout, hanging: [] }, 'proven') // the first one warms up: statements, the compiler of the JavaScript engine
  for (let round = 0; round < fanout.rounds; round += 1) {
    await beginAnew(fanout, 'new')
    const ofNew = await post(fanout, 'new')
    await beginAnew(fanout, 'proven')
    const ofProven = await post(fanout, 'proven')
    const ofKnown = await post(fanout, 'known')
    await beginAnew(fanout, 'proven')
    const bare = await post({ ...fanout, hanging: [] }, 'proven') // beside the one that is compared most closely
    measured.known.push(besides(bare, ofKnown))
    measured.proven.push(besides(bare, ofProven))
    measured.new.push(besides(bare, ofNew))
  }
  return [
    caseOf(fanout, 'known', measured.known),
    caseOf(fanout, 'proven', measured.proven),
    caseOf(fanout, 'new', measured.new),
  ]
}

function besides(bare: Posted, { spent, isComplete }: Posted): Round {
  return { subject: spent, bare: bare.spent, isComplete: isComplete && bare.isComplete }
}

function caseOf({ queue }: Fanout, standing: Standing, rounds: readonly Round[]): Result {
  // The first post may cost what it costs to find out who hangs.
  const floor = standing === 'known' ? FLOORS.hanging[queue] : undefined
  const milliseconds = (way: 'subject' | 'bare') =>
    Math.round(median(rounds.map((round) => round[way].seconds)) * 1_000)
  return {
    ...resultOf(`fan-out, ${names[standing]}, ${queue}`, rounds, floor),
    more: { milliseconds: milliseconds('subject'), if_none_hangs: milliseconds('bare') },
  }
}

/** Resets the pods: no pending deliveries, no failures, and a recent response of all but the new ones. */
async function beginAnew({ services, ports, hanging }: Fanout, standing: 'proven' | 'new'): Promise<void> {
  await services.db('deliveries').delete()
  await services
    .db('pods')
    .whereIn('port', [...ports])
    .update({ failures: 0, nextTryAt: null, offlineSince: null, lastSuccessAt: new Date() })
  if (standing === 'proven') return
  await services.db('pods').whereIn('port', portsAt(ports, hanging)).update({ lastSuccessAt: null })
}

/** Measures until every responding pod has the post. Hanging pods hang until then, and are released afterwards. */
async function post(fanout: Fanout, standing: Standing): Promise<Posted> {
  const { services, stores, author, others, ports, hanging, made } = fanout
  const signed = made()
  await told(others, { task: 'begin', hanging })
  const posts = await addPosts(services, author, { public: true, posts: 1 })
  const spent = await spentOn(ports.length - hanging.length, stores, async () => {
    const arrived = told(others, { task: 'wait' })
    await services.db.transaction((transaction) => enqueueJobsOfKind(services, transaction, dispatchJob, posts))
    await arrived
  })
  await told(others, { task: 'hang up' })
  while (!(await isIdle(services, ['outbound', 'outbound-slow']))) {
    // each look waits for the database and the queue
  }
  const saw = await told(others, { task: 'tell' })
  const isComplete =
    made() - signed === 1 &&
    wereAskedRightly(saw, hanging, standing) &&
    (await isWhatWasSigned(services, saw)) &&
    (await onlyHangingWait(fanout, standing))
  return { spent, isComplete }
}

/** Responding pods got exactly one request; hanging pods got requests unless they are known to hang. */
function wereAskedRightly({ asked }: ScriptedPodsSaw, hanging: readonly number[], standing: Standing): boolean {
  const hang = new Set(hanging)
  return asked.every((times, index) => (hang.has(index) ? times > 0 === (standing !== 'known') : times === 1))
}

async function isWhatWasSigned({ db }: Services, { bodies }: ScriptedPodsSaw): Promise<boolean> {
  const { envelope } = await db('outboundMessages').orderBy('id', 'desc').first('envelope')
  return bodies.length === 1 && bodies[0] === envelope
}

/** What has not arrived is for those that hang, and has its next try before it. */
async function onlyHangingWait({ services, ports, hanging }: Fanout, standing: Standing): Promise<boolean> {
  const { rows } = await services.db.raw(
    `select count(*) as left, count(*) filter (
       where state = 'waiting' and port = any(?) and failures = 1 and next_try_at > now()
     ) as waiting
     from deliveries join pods on pods.id = deliveries.pod_id`,
    [portsAt(ports, hanging)],
  )
  const [{ left, waiting }] = rows
  const posts = standing === 'known' ? 2 : 1
  return left === waiting && waiting === hanging.length * posts
}

function portsAt(ports: readonly number[], places: readonly number[]): number[] {
  return places.flatMap((place) => ports[place] ?? [])
}

async function told(others: ChildProcess, task: ScriptedPodsTask): Promise<ScriptedPodsSaw> {
  const answer = said<ScriptedPodsSaw>(others)
  others.send(task)
  return answer
}
