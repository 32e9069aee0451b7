import { type BenchOptions, latencyOf, type Result, reportSkipped, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { QueueStoreName } from '../machine/bench-stores.js'
import { forkFile, nextMessage } from '../machine/child-process.js'
import type { AttackResponses, AttackTask } from './attack-sender.js'
import { ATTACKS } from './attacks.js'
import { startHostilePod } from './hostile-pod.js'
import { addNewcomers, type OrdinaryTraffic, runOrdinaryTraffic } from './ordinary-traffic.js'
import { MEASURED_KINDS, type OrdinaryTimes, slowdownOf } from './slowdown.js'

const BASELINE_SECONDS = 10
/** Ordinary traffic that is not measured, because the first requests of a process are its slowest. */
const WARM_UP_SECONDS = 4
/** Share of the rounds of other benches, because a round starts a pod and takes most of a minute. */
const ROUNDS_SHARE = 1 / 5

/** Latency of ordinary traffic during an attack, compared with the same traffic without the attack. */
export async function* benchHostile({ rounds, cases, queues, strength = 1 }: BenchOptions): AsyncGenerator<Result> {
  for (const queue of ['postgresql', 'redis'] as const) {
    if (queues !== undefined && !queues.includes(queue)) continue
    for (const name of Object.keys(ATTACKS)) {
      if (cases !== undefined && !cases.includes(name)) continue
      const measuredRounds: Round[] = []
      for (let count = 0; count < rounds * ROUNDS_SHARE; count += 1) {
        const round = await measure(name, queue, strength)
        if (round === undefined) return reportSkipped('There is no redis-server on the PATH', 'the half with Redis')
        measuredRounds.push(round)
      }
      yield resultOf(name, queue, measuredRounds)
    }
  }
}

interface Round {
  readonly baseline: OrdinaryTraffic
  readonly during: OrdinaryTraffic
  readonly responses: AttackResponses
}

/** Undefined: Redis is not installed. Each attack has a new pod, so that the rows of one do not slow the next one. */
async function measure(name: string, queue: QueueStoreName, strength: number): Promise<Round | undefined> {
  const attack = ATTACKS[name]
  const pod = await startHostilePod(queue)
  if (pod === undefined || attack === undefined) return undefined
  const sender = forkFile('hostile/attack-sender')
  try {
    const parentGuid = await pod.publishParent()
    const newcomers = await addNewcomers(pod, 'early', BASELINE_SECONDS)
    const laterNewcomers = await addNewcomers(pod, 'late', attack.seconds)
    const loads = await attack.prepare(pod, parentGuid, strength)
    await runOrdinaryTraffic(pod, parentGuid, [], WARM_UP_SECONDS)
    const baseline = await runOrdinaryTraffic(pod, parentGuid, newcomers, BASELINE_SECONDS)
    const responses = nextMessage<AttackResponses>(sender)
    sender.send({ port: pod.port, loads } satisfies AttackTask)
    const during = await runOrdinaryTraffic(pod, parentGuid, laterNewcomers, attack.seconds)
    return { baseline, during, responses: await responses }
  } finally {
    sender.kill()
    await pod.close()
  }
}

export function resultOf(name: string, queue: QueueStoreName, rounds: readonly Round[]): Result {
  const baseline = joinTimes(rounds.map((round) => round.baseline))
  const during = joinTimes(rounds.map((round) => round.during))
  const slowdown = slowdownOf(baseline, during)
  const sum = (count: (round: Round) => number) => rounds.map(count).reduce((total, each) => total + each, 0)
  const refused = sum((round) => round.baseline.refused + round.during.refused)
  const lostOf = (kind: keyof OrdinaryTraffic['lost']) =>
    sum((round) => round.baseline.lost[kind] + round.during.lost[kind])
  const lost = { stored: lostOf('stored'), delivered: lostOf('delivered'), newcomers: lostOf('newcomers') }
  const newcomers = latencyOf(rounds.flatMap((round) => round.during.newcomers))
  return {
    bench: 'hostile',
    case: `${name}, ${queue}`,
    value: slowdown,
    unit: 'times p99',
    ratio: 1 / slowdown,
    floor: FLOORS.attacked,
    rounds: rounds.length,
    spread: spreadOf(rounds.map((round) => slowdownOf(round.baseline, round.during))),
    cpu_us: {},
    latency_ms: Object.fromEntries([
      ...MEASURED_KINDS.flatMap((kind) => [
        [kind, latencyOf(during[kind])],
        [`${kind} without`, latencyOf(baseline[kind])],
      ]),
      ['newcomers', newcomers],
    ]),
    more: {
      refused,
      lost_stored: lost.stored,
      lost_delivered: lost.delivered,
      lost_newcomers: lost.newcomers,
      attack_accepted: sum(({ responses }) => responses['202'] ?? 0),
      attack_answers: sum(({ responses }) => Object.values(responses).reduce((total, each) => total + each, 0)),
    },
    ok: refused + lost.stored + lost.delivered + lost.newcomers === 0,
  }
}

function joinTimes(times: readonly OrdinaryTimes[]): OrdinaryTimes {
  const all = (kind: keyof OrdinaryTimes) => times.flatMap((each) => each[kind])
  return { api: all('api'), accepted: all('accepted'), stored: all('stored'), delivered: all('delivered') }
}
