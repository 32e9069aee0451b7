import { type Command, Option } from 'commander'
import { blockPod, purgePod, putPodToSleep, unblockPod, wakePod } from '../../src/domain/moderation/pods.js'
import { probeKnownPod } from '../../src/federation/discovery/pod-checks.js'
import { isThisPod } from '../../src/federation/discovery/pod-location.js'
import { Pod as OtherPod, type PodHost } from '../../src/persistence/models/pod.js'
import { type KnownPod, type KnownPodFilter, listKnownPods } from '../../src/persistence/outbound/known-pods.js'
import type { Pod } from '../../src/pod/pod.js'
import { addressHostOf } from '../../src/protocol/address.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { queueAnswers } from '../queue-answers.js'
import { readPlace } from '../read-named.js'
import { withPod } from '../with-pod.js'

interface ListOptions extends OutputOptions {
  readonly state?: NonNullable<KnownPodFilter['state']>
}

export function podsCommands(program: Command): void {
  const pods = program.command('pods').description('Other pods: health, waiting deliveries, blocks.')

  pods
    .command('list')
    .description('Lists known pods.')
    .addOption(new Option('--state <state>', 'only those').choices(['blocked', 'asleep', 'offline']))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods list --state offline')
    .action(list)

  command('show', 'Shows one pod with everything that is known about it.', show)
  command('probe', 'Checks a pod now and stores the result.', probe)
  command(
    'sleep',
    'Gives up pending deliveries and stores no more until the pod responds; those of the last 14 days are then sent.',
    (place, options) => change(place, options, putPodToSleep),
  )
  command('wake', 'Clears the failures of a pod and sends what is due.', (place, options) =>
    change(place, options, wakePod),
  )
  command(
    'block',
    'Blocks a pod, known or not: no deliveries, no fetches; messages by its people are dropped, also when others relay them.',
    block,
  )
    .option('--purge', 'also delete its people and everything they sent; needs --yes')
    .option('--yes', 'confirm')
  command(
    'unblock',
    'Allows traffic with a blocked pod again. Deliveries that were given up stay so.',
    (place, options) => change(place, options, unblockPod),
  )

  function command(
    name: string,
    description: string,
    action: (place: PodHost, options: OutputOptions) => Promise<void>,
  ): Command {
    return pods
      .command(name)
      .argument('<pod>', 'the host or URL of a pod, or the address of a person there', readPlace)
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod pods ${name} pod.example`)
      .action(action)
  }
}

async function list({ state, ...options }: ListOptions): Promise<void> {
  const pods = await withPod(({ db }) => listKnownPods(db, state === undefined ? {} : { state }))
  const rows = pods.map((pod) => [
    addressHostOf(pod),
    stateOf(pod),
    pod.status,
    pod.software ?? '-',
    String(pod.people),
    String(pod.waiting),
    String(pod.dead),
  ])
  print(options, pods.map(present), [
    ...table([['pod', 'state', 'status', 'software', 'people', 'waiting', 'dead'], ...rows]).map(printable),
    pods.length === 1 ? '1 pod' : `${pods.length} pods`,
  ])
}

async function show(place: PodHost, options: OutputOptions): Promise<void> {
  printPod(await withPod((pod) => known(pod, place)), options)
}

async function probe(place: PodHost, options: OutputOptions): Promise<void> {
  const found = await withPod(async (pod) => {
    const other = await known(pod, place)
    if (other.blockedAt !== null)
      throw new CommandError(`${addressHostOf(place)} is blocked; no requests are sent to it.`)
    if (!(await probeKnownPod(pod, other))) {
      throw new CommandError(`${addressHostOf(place)} is not a usable address of a pod.`)
    }
    return known(pod, place)
  })
  printPod(found, options)
  const isWell = found.status === 'no_errors'
  if (!isWell) throw new CommandError(`The pod is unhealthy: ${found.lastError ?? found.status}`)
}

interface BlockOptions extends OutputOptions {
  readonly purge?: boolean
  readonly yes?: boolean
}

async function block(place: PodHost, { purge, yes, ...options }: BlockOptions): Promise<void> {
  if (!purge) return change(place, options, blockPod, remember)
  if (!yes) {
    const [pod] = await withPod(({ db }) => listKnownPods(db, { place }))
    const people = pod?.people ?? 0
    throw new CommandError(
      `This would delete ${people === 1 ? '1 person' : `${people} people`} of ${addressHostOf(place)} with all that came from them, and cannot be undone: add --yes to do it.`,
    )
  }
  return change(
    place,
    options,
    async (pod, podId) => {
      await blockPod(pod, podId)
      await purgePod(pod, podId)
    },
    remember,
  )
}

async function change(
  place: PodHost,
  options: OutputOptions,
  run: (pod: Pod, podId: number) => Promise<void>,
  find: (pod: Pod, place: PodHost) => Promise<{ readonly id: number }> = known,
): Promise<void> {
  const changed = await withPod(async (pod) => {
    const { id } = await find(pod, place)
    await queueAnswers(pod.jobs) // what follows may enqueue deliveries
    await run(pod, id)
    return known(pod, place)
  })
  printPod(changed, options)
}

/** A pod can be blocked before it is known. */
async function remember({ config, db }: Pod, place: PodHost): Promise<OtherPod> {
  if (isThisPod(config, place)) throw new CommandError(`${addressHostOf(place)} is this pod.`)
  return db.transaction((transaction) => OtherPod.findOrInsert(transaction, { ...place, ssl: false }))
}

async function known({ db }: Pod, place: PodHost): Promise<KnownPod> {
  const [pod] = await listKnownPods(db, { place })
  if (pod === undefined) throw new CommandError(`There is no known pod at ${addressHostOf(place)}.`)
  return pod
}

function printPod(pod: KnownPod, options: OutputOptions): void {
  const rows = Object.entries(present(pod)).map(([name, value]) => [name.replaceAll('_', ' '), String(value ?? '-')])
  print(options, present(pod), table(rows).map(printable))
}

function present(pod: KnownPod) {
  return {
    pod: addressHostOf(pod),
    state: stateOf(pod),
    status: pod.status,
    last_error: pod.lastError,
    software: pod.software,
    software_version: pod.softwareVersion,
    people: pod.people,
    waiting: pod.waiting,
    dead: pod.dead,
    skipped: pod.skippedDeliveries,
    failures: pod.failures,
    next_try_at: pod.nextTryAt?.toISOString() ?? null,
    offline_since: pod.offlineSince?.toISOString() ?? null,
    last_success_at: pod.lastSuccessAt?.toISOString() ?? null,
    checked_at: pod.checkedAt?.toISOString() ?? null,
    blocked_at: pod.blockedAt?.toISOString() ?? null,
  }
}

/** The state of the pod for deliveries, in one word. */
function stateOf({ blockedAt, asleep, nextTryAt, proven }: KnownPod): string {
  if (blockedAt !== null) return 'blocked'
  if (asleep) return 'asleep'
  if (nextTryAt !== null && nextTryAt.getTime() > Date.now()) return 'away'
  return proven ? 'proven' : 'unproven'
}
