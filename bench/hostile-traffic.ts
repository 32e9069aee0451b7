import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import type { OpenPod } from '../src/open-pod.js'
import { encodeBase64url } from '../src/protocol/base64.js'
import { load } from './accept.js'
import type { Result } from './bench.js'
import { FLOORS } from './floors.js'
import type { Setting } from './inbound.js'
import { type InboundCorpus, orphans, partOf } from './inbound-corpus.js'
import { addPerson, countsAreRight, empty, type PodProcess, untilWritten } from './inbound-pod.js'
import { processorTimesOf } from './processor-time.js'

const CONNECTIONS = 64
/** Good messages, by tens; as many have a wrong signature, an unknown host, no parent, or a sender whose pod hangs. */
const TENS = 100
const SHARE_OF_GOOD = 0.2
const HOSTS = 50

/** One good message among four that are not. The limit: what would come of that share if the others were good too. */
export async function measureHostile(
  { queue, bits, stores, loader, corpus }: Setting,
  pod: OpenPod,
  processes: readonly PodProcess[],
  rate: number,
): Promise<Result> {
  const good = partOf(corpus, TENS)
  const { author, envelopes } = await orphans(bits, good.messages.length)
  await addPerson(pod.db, author)
  await empty(pod.db, corpus)
  const hanging = createServer().listen(0, '127.0.0.1')
  await once(hanging, 'listening')
  const { port: deaf } = hanging.address() as AddressInfo // it listens on a port
  try {
    const bodies = mixed(good, envelopes, deaf)
    const port = processes.find(({ name }) => name === 'web')?.port ?? 0
    const pids = {
      ...Object.fromEntries(processes.map(({ name, child }) => [name, child.pid ?? Number.NaN])),
      ...stores.pids,
    }
    const before = processorTimesOf(pids)
    const sent = await load(loader, { port, path: '/receive/public', connections: CONNECTIONS, bodies })
    const written = await untilWritten(pod.db, good)
    const after = processorTimesOf(pids)
    const seconds = (Math.max(...written.values()) - (sent.sentAt[0] ?? Number.NaN)) / 1_000
    const value = good.messages.length / seconds
    const limit = rate * SHARE_OF_GOOD
    return {
      bench: 'inbound',
      case: `hostile, ${queue}, rsa${bits}`,
      value,
      unit: 'msg/s',
      limit,
      ratio: value / limit,
      floor: FLOORS.hostile[queue],
      rounds: 1,
      spread: 0,
      cpu_us: Object.fromEntries(
        Object.keys(pids).map((name) => [name, ((after[name] ?? 0) - (before[name] ?? 0)) / bodies.length]),
      ),
      ok: sent.wrong === 0 && (await countsAreRight(pod.db, good)),
    }
  } finally {
    hanging.close()
  }
}

function mixed({ messages }: InboundCorpus, withoutParent: readonly string[], deaf: number): readonly string[] {
  return messages.flatMap(({ envelope }, index) => [
    envelope,
    envelope.replace(/(key_id="[^"]+">)(.)/, (_, head, first) => head + (first === 'A' ? 'B' : 'A')),
    sentBy(envelope, `stranger${index}@pod${index % HOSTS}.invalid`),
    withoutParent[index] ?? '',
    sentBy(envelope, `stranger${index}@127.0.0.1:${deaf}`),
  ])
}

function sentBy(envelope: string, address: string): string {
  return envelope.replace(/key_id="[^"]+"/, `key_id="${encodeBase64url(Buffer.from(address))}"`)
}
