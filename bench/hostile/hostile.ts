import { type BenchOptions, latencyOf, leaveOut, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import type { QueueStoreName } from '../machine/bench-stores.js'
import { forkFile, said } from '../machine/child-process.js'
import type { AttackAnswers, AttackTask } from './attack-sender.js'
import { ATTACKS } from './attacks.js'
import { startHostilePod } from './hostile-pod.js'
import { addNewcomers, type OrdinaryTraffic, runOrdinaryTraffic } from './ordinary-traffic.js'
import { JUDGED, type OrdinaryTimes, slowdownOf } from './slowdown.js'

const SECONDS_WITHOUT = 10
/** The first requests of a process are its slowest. */
const SECONDS_UNMEASURED = 4
/** A round needs a pod of its own and most of a minute, so five rounds of other benches are one of these. */
const PART_OF_ROUNDS = 1 / 5

/** What people notice of the pod while it is attacked, beside what they notice without the attack. */
export async function* benchHostile({ rounds, cases, queues, strength = 1 }: BenchOptions): AsyncGenerator<Result> {
  for (const queue of ['postgresql', 'redis'] as const) {
    if (queues !== undefined && !queues.includes(queue)) continue
    for (const name of Object.keys(ATTACKS)) {
      if (cases !== undefined && !cases.includes(name)) continue
      const measured: Round[] = []
      for (let round = 0; round < rounds * PART_OF_ROUNDS; round += 1) {
        const measuredOnce = await measure(name, queue, strength)
        if (measuredOnce === undefined) return leaveOut('There is no redis-server on the PATH', 'the half with Redis')
        measured.push(measuredOnce)
      }
      yield resultOf(name, queue, measured)
    }
  }
}

interface Round {
  readonly without: OrdinaryTraffic
  readonly during: OrdinaryTraffic
  readonly answers: AttackAnswers
}

/** Undefined: there is no Redis on this machine. Each attack has a new pod: what one leaves behind must not slow the next one. */
async function measure(name: string, queue: QueueStoreName, strength: number): Promise<Round | undefined> {
  const attack = ATTACKS[name]
  const pod = await startHostilePod(queue)
  if (pod === undefined || attack === undefined) return undefined
  const sender = forkFile('hostile/attack-sender')
  try {
    const parentGuid = await pod.publishParent()
    const newcomers = await addNewcomers(pod, 'early', SECONDS_WITHOUT)
    const laterNewcomers = await addNewcomers(pod, 'late', attack.seconds)
    const loads = await attack.prepare(pod, parentGuid, strength)
    await runOrdinaryTraffic(pod, parentGuid, [], SECONDS_UNMEASURED)
    const without = await runOrdinaryTraffic(pod, parentGuid, newcomers, SECONDS_WITHOUT)
    const answers = said<AttackAnswers>(sender)
    sender.send({ port: pod.port, loads } satisfies AttackTask)
    const during = await runOrdinaryTraffic(pod, parentGuid, laterNewcomers, attack.seconds)
    return { without, during, answers: await answers }
  } finally {
    sender.kill()
    await pod.close()
  }
}

export function resultOf(name: string, queue: QueueStoreName, rounds: readonly Round[]): Result {
  const without = joined(rounds.map((round) => round.without))
  const during = joined(rounds.map((round) => round.during))
  const slowdown = slowdownOf(without, during)
  const sum = (count: (round: Round) => number) => rounds.map(count).reduce((total, each) => total + each, 0)
  const refused = sum((round) => round.without.refused + round.during.refused)
  const lostOf = (kind: keyof OrdinaryTraffic['lost']) =>
    sum((round) => round.without.lost[kind] + round.during.lost[kind])
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
    spread: spreadOf(rounds.map((round) => slowdownOf(round.without, round.during))),
    cpu_us: {},
    latency_ms: Object.fromEntries([
      ...JUDGED.flatMap((kind) => [
        [kind, latencyOf(during[kind])],
        [`${kind} without`, latencyOf(without[kind])],
      ]),
      ['newcomers', newcomers],
    ]),
    more: {
      refused,
      lost_stored: lost.stored,
      lost_delivered: lost.delivered,
      lost_newcomers: lost.newcomers,
      attack_accepted: sum(({ answers }) => answers['202'] ?? 0),
      attack_answers: sum(({ answers }) => Object.values(answers).reduce((total, each) => total + each, 0)),
    },
    ok: refused + lost.stored + lost.delivered + lost.newcomers === 0,
  }
}

function joined(times: readonly OrdinaryTimes[]): OrdinaryTimes {
  const all = (kind: keyof OrdinaryTimes) => times.flatMap((each) => each[kind])
  return { api: all('api'), accepted: all('accepted'), stored: all('stored'), delivered: all('delivered') }
}
