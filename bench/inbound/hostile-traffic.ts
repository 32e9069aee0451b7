import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { encodeBase64url } from '../../src/protocol/base64.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { median, medianCpu, type Result, spreadOf } from '../bench.js'
import { FLOORS } from '../floors.js'
import { runPostLoad } from '../load/post-loader.js'
import { processorTimesOf, timePerMessage } from '../machine/processor-time.js'
import type { InboundSetup } from './inbound.js'
import {
  type Bits,
  firstMessages,
  type InboundCorpus,
  makeOrphanComments,
  type OrphanComments,
} from './inbound-corpus.js'
import { addPerson, areCountsCorrect, type PodProcess, resetRows, waitUntilWritten } from './inbound-pod.js'

const CONNECTIONS = 64
/** Valid messages. As many others each have an invalid signature, an unknown host, an unknown parent, or a sender whose pod hangs. */
const GOOD_MESSAGES = 1_000
/** The same number of messages, all of them good. */
const ALL_MESSAGES = 5_000
const SHARE_OF_GOOD = GOOD_MESSAGES / ALL_MESSAGES
const HOSTS = 50

/** Comments without a parent for a number of rounds of `measureHostileTraffic`. */
export async function makeOrphansForRounds(bits: Bits, rounds: number): Promise<OrphanComments> {
  return makeOrphanComments(bits, rounds * GOOD_MESSAGES)
}

/** One good message among four bad ones. The limit is the same share of the rate of good messages alone. */
export async function measureHostileTraffic(
  setup: InboundSetup,
  services: OpenServices,
  processes: readonly PodProcess[],
  { author, envelopes }: OrphanComments,
): Promise<Result> {
  const { queue, bits, rounds, corpus } = setup
  const [good, allGood] = [firstMessages(corpus, GOOD_MESSAGES), firstMessages(corpus, ALL_MESSAGES)]
  await addPerson(services.db, author)
  const hanging = createServer().listen(0, '127.0.0.1')
  await once(hanging, 'listening')
  const { port: hangingPort } = hanging.address() as AddressInfo // it listens on a port
  try {
    const goodBursts: Burst[] = []
    const mixedBursts: Burst[] = []
    for (let round = 0; round < rounds; round += 1) {
      // A failed discovery is not repeated for hours, so every round has its own unknown persons and parents.
      const orphans = envelopes.slice(round * good.messages.length)
      goodBursts.push(await measureBurst(setup, services, processes, { good: allGood, bodies: envelopesOf(allGood) }))
      mixedBursts.push(
        await measureBurst(setup, services, processes, {
          good,
          bodies: mixMessages(good, orphans, hangingPort, round),
        }),
      )
    }
    const rates = mixedBursts.map(({ perSecond }) => perSecond)
    const limits = goodBursts.map(({ perSecond }) => perSecond * SHARE_OF_GOOD)
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
      cpu_us: medianCpu(mixedBursts),
      ok: [...goodBursts, ...mixedBursts].every(({ ok }) => ok),
    }
  } finally {
    hanging.close()
  }
}

interface Burst {
  /** Good messages per second. */
  readonly perSecond: number
  /** Microseconds per message of any kind, by process. */
  readonly cpu: Readonly<Record<string, number>>
  readonly ok: boolean
}

/** Measures until the good messages of a burst are stored. Work of the others may continue in the meantime. */
async function measureBurst(
  { stores, loader, corpus }: InboundSetup,
  { db }: OpenServices,
  processes: readonly PodProcess[],
  { good, bodies }: { readonly good: InboundCorpus; readonly bodies: readonly string[] },
): Promise<Burst> {
  await resetRows(db, corpus)
  const port = processes.find(({ name }) => name === 'web')?.port ?? 0
  const pids = {
    ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
    ...stores.pids,
  }
  const before = processorTimesOf(pids)
  const sent = await runPostLoad(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies })
  const written = await waitUntilWritten(db, good)
  const after = processorTimesOf(pids)
  const seconds = (Math.max(...written.values()) - (sent.sentAt[0] ?? Number.NaN)) / 1_000
  return {
    perSecond: good.messages.length / seconds,
    cpu: timePerMessage(bodies.length, before, after),
    ok: sent.failures === 0 && (await areCountsCorrect(db, good)),
  }
}

function envelopesOf({ messages }: InboundCorpus): readonly string[] {
  return messages.map(({ envelope }) => envelope)
}

function mixMessages(
  { messages }: InboundCorpus,
  orphans: readonly string[],
  hangingPort: number,
  round: number,
): readonly string[] {
  return messages.flatMap(({ envelope }, index) => [
    envelope,
    envelope.replace(/(key_id="[^"]+">)(.)/, (_, head, first) => head + (first === 'A' ? 'B' : 'A')),
    withSender(envelope, `unknown${index}@pod${index % HOSTS}-${round}.invalid`),
    orphans[index] ?? '',
    withSender(envelope, `unknown${index}-${round}@127.0.0.1:${hangingPort}`),
  ])
}

function withSender(envelope: string, address: string): string {
  return envelope.replace(/key_id="[^"]+"/, `key_id="${encodeBase64url(Buffer.from(address))}"`)
}
