import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { encodeBase64url } from '../../src/protocol/base64.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { load } from '../load/post-loader.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import type { Setting } from './inbound.js'
import { type Bits, type InboundCorpus, type Orphans, orphans, partOf } from './inbound-corpus.js'
import { addPerson, countsAreRight, empty, type PodProcess, untilWritten } from './inbound-pod.js'

const CONNECTIONS = 64
/** Good messages, by tens; as many have a wrong signature, an unknown host, no parent, or a sender whose pod hangs. */
const TENS = 100
/** As many messages, all of them good. */
const TENS_ALL_GOOD = 500
const SHARE_OF_GOOD = TENS / TENS_ALL_GOOD
const HOSTS = 50

/** What is missing for good, for `rounds` rounds of `measureHostile`. */
export async function missingFor(bits: Bits, rounds: number): Promise<Orphans> {
  return orphans(bits, rounds * TENS * 10)
}

/** One good message among four that are not. The limit: what would come of that share if the others were good too. */
export async function measureHostile(
  setting: Setting,
  services: OpenServices,
  processes: readonly PodProcess[],
  { author, envelopes }: Orphans,
): Promise<Result> {
  const { queue, bits, rounds, corpus } = setting
  const [good, allGood] = [partOf(corpus, TENS), partOf(corpus, TENS_ALL_GOOD)]
  await addPerson(services.db, author)
  const hanging = createServer().listen(0, '127.0.0.1')
  await once(hanging, 'listening')
  const { port: deaf } = hanging.address() as AddressInfo // it listens on a port
  try {
    const besides: Burst[] = []
    const bursts: Burst[] = []
    for (let round = 0; round < rounds; round += 1) {
      // A failed discovery is not repeated for hours, so every round has its own unknown persons and parents.
      const parents = envelopes.slice(round * good.messages.length)
      besides.push(await measureBurst(setting, services, processes, allGood, envelopesOf(allGood)))
      bursts.push(await measureBurst(setting, services, processes, good, mixed(good, parents, deaf, round)))
    }
    const rates = bursts.map(({ perSecond }) => perSecond)
    const limits = besides.map(({ perSecond }) => perSecond * SHARE_OF_GOOD)
    return {
      bench: 'inbound',
      case: `hostile, ${queue}, rsa${bits}`,
      value: median(rates),
      unit: 'msg/s',
      limit: median(limits),
      ratio: median(rates.map((rate, round) => rate / (limits[round] ?? Number.NaN))),
      floor: FLOORS.hostile[queue],
      rounds,
      spread: spreadOf(rates),
      cpu_us: medianCpu(bursts),
      ok: [...besides, ...bursts].every(({ ok }) => ok),
    }
  } finally {
    hanging.close()
  }
}

interface Burst {
  /** Of the good ones. */
  readonly perSecond: number
  /** Microseconds for one message of any kind, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly ok: boolean
}

/** Until the good messages of a burst are stored. What the others have left behind goes on in the meantime. */
async function measureBurst(
  { stores, loader, corpus }: Setting,
  { db }: OpenServices,
  processes: readonly PodProcess[],
  good: InboundCorpus,
  bodies: readonly string[],
): Promise<Burst> {
  await empty(db, corpus)
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
  }
  const before = processorTimesOf(pids)
  const sent = await load(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies })
  const written = await untilWritten(db, good)
  const after = processorTimesOf(pids)
  const seconds = (Math.max(...written.values()) - (sent.sentAt[0] ?? Number.NaN)) / 1_000
  return {
    perSecond: good.messages.length / seconds,
    cpu: timePerMessage(bodies.length, before, after),
    ok: sent.wrong === 0 && (await countsAreRight(db, good)),
  }
}

function envelopesOf({ messages }: InboundCorpus): readonly string[] {
  return messages.map(({ envelope }) => envelope)
}

function mixed(
  { messages }: InboundCorpus,
  withoutParent: readonly string[],
  deaf: number,
  round: number,
): readonly string[] {
  return messages.flatMap(({ envelope }, index) => [
    envelope,
    envelope.replace(/(key_id="[^"]+">)(.)/, (_, head, first) => head + (first === 'A' ? 'B' : 'A')),
    sentBy(envelope, `unknown${index}@pod${index % HOSTS}-${round}.invalid`),
    withoutParent[index] ?? '',
    sentBy(envelope, `unknown${index}-${round}@127.0.0.1:${deaf}`),
  ])
}

function sentBy(envelope: string, address: string): string {
  return envelope.replace(/key_id="[^"]+"/, `key_id="${encodeBase64url(Buffer.from(address))}"`)
}
