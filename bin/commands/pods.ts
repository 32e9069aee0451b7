import { type Command, Option } from 'commander'
import { blockHost, unblockHost } from '../../src/domain/moderation/pods/pod-rules.js'
import { purgePod } from '../../src/domain/moderation/pods/pods.js'
import { changePod, pausePod, readPodActivity, resumePod } from '../../src/domain/operations/pods.js'
import { probeKnownPod } from '../../src/federation/discovery/pod-checks.js'
import { isThisPod } from '../../src/federation/discovery/pod-location.js'
import { Pod as OtherPod, type PodHost } from '../../src/persistence/models/pod.js'
import { POD_STATES } from '../../src/persistence/operations/pod-pages.js'
import { type KnownPod, type KnownPodFilter, listKnownPods } from '../../src/persistence/outbound/known-pods.js'
import { toPodState } from '../../src/persistence/outbound/pod-state.js'
import type { Pod } from '../../src/pod/pod.js'
import { formatAddressHost } from '../../src/protocol/address.js'
import { type ActorOptions, findActor, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { readEnd } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { queueAnswers } from '../queue-answers.js'
import { readPodHost } from '../read-named.js'
import { withPod } from '../with-pod.js'
import { podRuleCommands } from './moderation/pod-rules.js'

interface ListOptions extends OutputOptions {
  readonly state?: NonNullable<KnownPodFilter['state']>
}

export function podsCommands(program: Command): void {
  const pods = program.command('pods').description('Other pods: health, waiting deliveries, blocks.')

  pods
    .command('list')
    .description('Lists known pods.')
    .addOption(new Option('--state <state>', 'only those').choices([...POD_STATES]))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods list --state offline')
    .action(list)

  command('show', 'Shows one pod with everything that is known about it.', show)
  command('probe', 'Checks a pod now and stores the result.', probe)
  action(
    'sleep',
    'Gives up pending deliveries and stores no more until the pod responds; those of the last 14 days are then sent.',
    (place, options) => change(place, options, 'sleep'),
  )
  action('wake', 'Clears the failures of a pod and sends what is due.', (place, options) =>
    change(place, options, 'wake'),
  )
  action(
    'block',
    'Blocks a pod and its subdomains, known or not: no deliveries, no fetches; messages by its people are dropped, also when others relay them.',
    block,
  )
    .option('--purge', 'also delete its people and everything they sent; needs --yes')
    .option('--yes', 'confirm')
  action('unblock', 'Ends the block of a pod, and sends what was given up in the last 14 days.', unblock)
  action(
    'pause',
    'Keeps deliveries and fetches waiting, at most 14 days. Incoming messages are not concerned.',
    pause,
  ).option('--until <time>', 'a day, a time, or a duration from now like 3d; default: 14d', readEnd)
  action('resume', 'Ends a pause.', (place, options) => changePause(place, options, resumePod))
  podRuleCommands(pods)

  function action(
    name: string,
    description: string,
    run: (place: PodHost, options: ActorOptions) => Promise<void>,
  ): Command {
    return withActorOptions(command(name, description, run, ' --reason "Spam"'))
  }

  function command(
    name: string,
    description: string,
    run: (place: PodHost, options: OutputOptions) => Promise<void>,
    example = '',
  ): Command {
    return pods
      .command(name)
      .argument('<pod>', 'the host or URL of a pod, or the address of a person there', readPodHost)
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod pods ${name} pod.example${example}`)
      .action(run)
  }
}

async function list({ state, ...options }: ListOptions): Promise<void> {
  const pods = await withPod(({ db }) => listKnownPods(db, state === undefined ? {} : { state }))
  const rows = pods.map((pod) => [
    formatAddressHost(pod),
    toPodState(pod, new Date()),
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
  const { other, activity } = await withPod(async (pod) => {
    const other = await known(pod, place)
    return { other, activity: await readPodActivity(pod, other.id) }
  })
  const { days, latency } = activity
  const rows = days.map(({ day, delivered, failed, received, refused }) => [
    day,
    ...[delivered, failed, received, refused].map(String),
  ])
  print(options, { ...present(other), delivery_ms: latency, days }, [
    ...linesOf(other),
    ...table([['delivery ms', `p50 ${latency.p50 ?? '-'}, p95 ${latency.p95 ?? '-'}`]]),
    ...(rows.length === 0 ? [] : ['', ...table([['day', 'delivered', 'failed', 'received', 'refused'], ...rows])]),
  ])
}

async function probe(place: PodHost, options: OutputOptions): Promise<void> {
  const found = await withPod(async (pod) => {
    const other = await known(pod, place)
    if (other.blockedAt !== null)
      throw new CommandError(`${formatAddressHost(place)} is blocked; no requests are sent to it.`)
    if (!(await probeKnownPod(pod, other))) {
      throw new CommandError(`${formatAddressHost(place)} is not a usable address of a pod.`)
    }
    return known(pod, place)
  })
  const steps = found.probe?.steps ?? []
  print(options, { ...present(found), probe: found.probe }, [
    ...linesOf(found),
    '',
    ...table(steps.map(({ step, ok, ms, detail }) => [step, ok ? 'passed' : 'failed', `${ms} ms`, detail])).map(
      printable,
    ),
  ])
  const isWell = found.status === 'no_errors'
  if (!isWell) throw new CommandError(`The pod is unhealthy: ${found.lastError ?? found.status}`)
}

interface BlockOptions extends ActorOptions {
  readonly purge?: boolean
  readonly yes?: boolean
}

async function block(place: PodHost, { purge, yes, reason, ...options }: BlockOptions): Promise<void> {
  if (purge && !yes) {
    const [pod] = await withPod(({ db }) => listKnownPods(db, { place }))
    const people = pod?.people ?? 0
    throw new CommandError(
      `This would delete ${people === 1 ? '1 person' : `${people} people`} of ${formatAddressHost(place)} with all that came from them, and cannot be undone: add --yes to do it.`,
    )
  }
  const changed = await withPod(async (pod) => {
    if (isThisPod(pod.config, place)) throw new CommandError(`${formatAddressHost(place)} is this pod.`)
    await queueAnswers(pod.jobs)
    // The row is there before the rule, so that `show` finds the pod.
    const { id } = await pod.db.transaction((transaction) =>
      OtherPod.findOrInsert(transaction, { ...place, ssl: false }),
    )
    await blockHost(pod, await findActor(pod, options, 'moderation'), place, { reason })
    if (purge) await purgePod(pod, id)
    return known(pod, place)
  })
  printPod(changed, options)
}

async function unblock(place: PodHost, { reason, ...options }: ActorOptions): Promise<void> {
  const changed = await withPod(async (pod) => {
    await known(pod, place)
    await queueAnswers(pod.jobs)
    await unblockHost(pod, await findActor(pod, options, 'moderation'), place, { reason })
    return known(pod, place)
  })
  printPod(changed, options)
}

async function change(place: PodHost, { reason, ...options }: ActorOptions, action: 'sleep' | 'wake'): Promise<void> {
  const changed = await withPod(async (pod) => {
    const { id, host, port } = await known(pod, place)
    await queueAnswers(pod.jobs) // what follows may enqueue deliveries
    await changePod(pod, await findActor(pod, options, 'administration'), action, { id, host, port, reason })
    return known(pod, place)
  })
  printPod(changed, options)
}

async function pause(place: PodHost, { until, ...options }: ActorOptions & { readonly until?: Date }): Promise<void> {
  await changePause(place, options, (pod, actor, other, { reason }) => pausePod(pod, actor, other, { reason, until }))
}

async function changePause(place: PodHost, { reason, ...options }: ActorOptions, run: typeof resumePod): Promise<void> {
  const changed = await withPod(async (pod) => {
    const other = await known(pod, place)
    await queueAnswers(pod.jobs)
    await run(pod, await findActor(pod, options, 'administration'), other, { reason })
    return known(pod, place)
  })
  printPod(changed, options)
}

async function known({ db }: Pod, place: PodHost): Promise<KnownPod> {
  const [pod] = await listKnownPods(db, { place })
  if (pod === undefined) throw new CommandError(`There is no known pod at ${formatAddressHost(place)}.`)
  return pod
}

function printPod(pod: KnownPod, options: OutputOptions): void {
  print(options, present(pod), linesOf(pod))
}

function linesOf(pod: KnownPod): readonly string[] {
  const rows = Object.entries(present(pod)).map(([name, value]) => [name.replaceAll('_', ' '), String(value ?? '-')])
  return table(rows).map(printable)
}

function present(pod: KnownPod) {
  return {
    pod: formatAddressHost(pod),
    state: toPodState(pod, new Date()),
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
    paused_until: pod.pausedUntil?.toISOString() ?? null,
  }
}
