import { type Command, Option } from 'commander'
import {
  blockHost,
  previewDetails,
  previewPodRule,
  ruleDomainOf,
  unblockHost,
} from '../../src/domain/moderation/pods/pod-rules.js'
import { previewPodPurge, purgePod } from '../../src/domain/moderation/pods/purge-pod.js'
import { changePod, pausePod, readPodActivity, resumePod } from '../../src/domain/operations/pods.js'
import { Refusal } from '../../src/domain/refusals.js'
import { isThisPod } from '../../src/federation/discovery/pod-location.js'
import { probeKnownPod } from '../../src/federation/discovery/scheduled-pod-checks.js'
import { type PodHost, RemotePod } from '../../src/persistence/models/remote-pod.js'
import { listPodErrors, POD_LIST_FILTERS } from '../../src/persistence/operations/pod-lists.js'
import { toDeliveryState } from '../../src/persistence/outbound/delivery-state.js'
import { type KnownPod, type KnownPodFilter, listKnownPods } from '../../src/persistence/outbound/known-pods.js'
import { formatAddressHost } from '../../src/protocol/address.js'
import type { Services } from '../../src/services/services.js'
import { type ActorOptions, getActor, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { readEnd } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { readPodHost } from '../read-named.js'
import { waitForQueue } from '../wait-for-queue.js'
import { withPod } from '../with-pod.js'
import { podRuleCommands, printRulePreview } from './moderation/pod-rules.js'

interface ListOptions extends OutputOptions {
  readonly state?: NonNullable<KnownPodFilter['state']>
}

export function podsCommands(program: Command): void {
  const pods = program.command('pods').description('Other pods: health, waiting deliveries, blocks.')

  pods
    .command('list')
    .description('Lists known pods.')
    .addOption(new Option('--state <state>', 'only pods in this state').choices([...POD_LIST_FILTERS]))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod pods list --state offline')
    .action(list)

  command('show', 'Shows one pod with all stored facts.', show)
  command('probe', 'Checks a pod now and stores the result.', probe)
  action(
    'sleep',
    'Gives up waiting deliveries and stores no new ones until the pod responds; then those of the last 14 days are sent.',
    (hostPort, options) => change(hostPort, options, 'sleep'),
  )
  action('wake', 'Clears the failures of a pod and sends the due deliveries.', (hostPort, options) =>
    change(hostPort, options, 'wake'),
  )
  action(
    'block',
    'Blocks a pod and its subdomains, even unknown ones: no fetches, and only retractions and account deletions are delivered. Messages from its people are ignored, even relayed ones.',
    block,
  )
    .option('--purge', 'also delete its people and everything they sent; needs --yes')
    .option('--dry-run', 'only show the effect of the block and the purge')
    .option('--yes', 'confirm a block that ends relations of local users')
  action('unblock', 'Ends the block of a pod and sends the deliveries given up in the last 14 days.', unblock)
  action(
    'pause',
    'Suspends deliveries and fetches for at most 14 days. Incoming messages are still accepted.',
    pause,
  ).option('--until <time>', 'a day, a time, or a duration from now like 3d; default: 14d', readEnd)
  action('resume', 'Ends a pause.', (hostPort, options) => changePause(hostPort, options, resumePod))
  podRuleCommands(pods)

  function action(
    name: string,
    description: string,
    run: (hostPort: PodHost, options: ActorOptions) => Promise<void>,
  ): Command {
    return withActorOptions(command(name, description, run, ' --reason "Spam"'))
  }

  function command(
    name: string,
    description: string,
    run: (hostPort: PodHost, options: OutputOptions) => Promise<void>,
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
    toDeliveryState(pod, new Date()),
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

async function show(hostPort: PodHost, options: OutputOptions): Promise<void> {
  const { other, activity, errors } = await withPod(async (services) => {
    const other = await getKnownPod(services, hostPort)
    const activity = await readPodActivity(services, other.id)
    return { other, activity, errors: await listPodErrors(services.db, other.id) }
  })
  const { days, latency } = activity
  const rows = days.map(({ day, delivered, failed, received, refused }) => [
    day,
    ...[delivered, failed, received, refused].map(String),
  ])
  const presentedErrors = errors.map(({ at, status, error }) => ({ at: at.toISOString(), status, error }))
  const errorRows = presentedErrors.map(({ at, status, error }) => [at, status, error])
  print(options, { ...present(other), errors: presentedErrors, delivery_ms: latency, days }, [
    ...linesOf(other),
    ...table([['delivery ms', `p50 ${latency.p50 ?? '-'}, p95 ${latency.p95 ?? '-'}`]]),
    ...(rows.length === 0 ? [] : ['', ...table([['day', 'delivered', 'failed', 'received', 'refused'], ...rows])]),
    ...(errorRows.length === 0 ? [] : ['', ...table([['time', 'status', 'error'], ...errorRows]).map(printable)]),
  ])
}

async function probe(hostPort: PodHost, options: OutputOptions): Promise<void> {
  const probedPod = await withPod(async (services) => {
    const other = await getKnownPod(services, hostPort)
    if (other.blockedAt !== null)
      throw new CommandError(`${formatAddressHost(hostPort)} is blocked; no requests are sent to it.`)
    if (!(await probeKnownPod(services, other))) {
      throw new CommandError(`${formatAddressHost(hostPort)} is not a usable address of a pod.`)
    }
    return getKnownPod(services, hostPort)
  })
  const steps = probedPod.probe?.steps ?? []
  print(options, { ...present(probedPod), probe: probedPod.probe }, [
    ...linesOf(probedPod),
    '',
    ...table(steps.map(({ step, ok, ms, detail }) => [step, ok ? 'passed' : 'failed', `${ms} ms`, detail])).map(
      printable,
    ),
  ])
  const isWell = probedPod.status === 'no_errors'
  if (!isWell) throw new CommandError(`The pod is unhealthy: ${probedPod.lastError ?? probedPod.status}`)
}

interface BlockOptions extends ActorOptions {
  readonly purge?: boolean
  readonly dryRun?: boolean
  readonly yes?: boolean
}

async function block(
  hostPort: PodHost,
  { purge, dryRun, yes = false, reason, ...options }: BlockOptions,
): Promise<void> {
  if (purge && (dryRun || !yes)) await refusePurge(hostPort, options)
  if (dryRun) return printRulePreview(ruleDomainOf(hostPort), options)
  const changedPod = await withPod(async (services) => {
    requireOtherPod(services, hostPort)
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, purge ? 'administration' : 'moderation')
    await blockHost(services, actor, hostPort, { reason, isConfirmed: yes })
    const { id } = await services.db.transaction((transaction) =>
      RemotePod.findOrInsert(transaction, { ...hostPort, ssl: false }),
    )
    if (purge) await purgePod(services, actor, { id, ...hostPort }, { reason })
    return getKnownPod(services, hostPort)
  })
  printPod(changedPod, options)
}

/** Refuses a purge without a confirmation. The preview is about the rule and its subdomains, `would_delete` only about the purged pod. */
async function refusePurge(hostPort: PodHost, options: ActorOptions): Promise<never> {
  const preview = await withPod(async (services) => {
    requireOtherPod(services, hostPort)
    const actor = await getActor(services, options, 'administration')
    const rule = await previewPodRule(services, actor, ruleDomainOf(hostPort))
    return { ...previewDetails(rule), would_delete: await previewPodPurge(services, actor, hostPort) }
  })
  throw new Refusal('confirmation_needed', 'Confirm the purge.', { details: { preview } })
}

function requireOtherPod({ config }: Services, hostPort: PodHost): void {
  if (isThisPod(config, hostPort)) throw new CommandError(`${formatAddressHost(hostPort)} is this pod.`)
}

async function unblock(hostPort: PodHost, { reason, ...options }: ActorOptions): Promise<void> {
  const changedPod = await withPod(async (services) => {
    await getKnownPod(services, hostPort)
    await waitForQueue(services.jobs)
    await unblockHost(services, await getActor(services, options, 'moderation'), hostPort, { reason })
    return getKnownPod(services, hostPort)
  })
  printPod(changedPod, options)
}

async function change(
  hostPort: PodHost,
  { reason, ...options }: ActorOptions,
  action: 'sleep' | 'wake',
): Promise<void> {
  const changedPod = await withPod(async (services) => {
    const { id, host, port } = await getKnownPod(services, hostPort)
    await waitForQueue(services.jobs) // the change may enqueue deliveries
    await changePod(services, await getActor(services, options, 'administration'), action, { id, host, port, reason })
    return getKnownPod(services, hostPort)
  })
  printPod(changedPod, options)
}

async function pause(
  hostPort: PodHost,
  { until, ...options }: ActorOptions & { readonly until?: Date },
): Promise<void> {
  await changePause(hostPort, options, (services, actor, other, { reason }) =>
    pausePod(services, actor, other, { reason, until }),
  )
}

async function changePause(
  hostPort: PodHost,
  { reason, ...options }: ActorOptions,
  run: typeof resumePod,
): Promise<void> {
  const changedPod = await withPod(async (services) => {
    const other = await getKnownPod(services, hostPort)
    await waitForQueue(services.jobs)
    await run(services, await getActor(services, options, 'administration'), other, { reason })
    return getKnownPod(services, hostPort)
  })
  printPod(changedPod, options)
}

async function getKnownPod({ db }: Services, hostPort: PodHost): Promise<KnownPod> {
  const [pod] = await listKnownPods(db, { hostPort })
  if (pod === undefined) throw new CommandError(`There is no known pod at ${formatAddressHost(hostPort)}.`)
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
    state: toDeliveryState(pod, new Date()),
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
