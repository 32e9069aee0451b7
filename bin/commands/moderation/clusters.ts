import { type Command, Option } from 'commander'
import { type CleanOutcome, cleanCluster } from '../../../src/domain/moderation/clusters/clean-cluster.js'
import { dismissCluster, listSpamClusters, readCluster } from '../../../src/domain/moderation/clusters/clusters.js'
import { previewCleaning } from '../../../src/domain/moderation/clusters/plan-cleaning.js'
import { Refusal } from '../../../src/domain/refusals.js'
import { CLUSTER_STATES, type ClusterState } from '../../../src/persistence/moderation/clusters.js'
import {
  presentCleaning,
  presentCluster,
  presentClusterDetails,
  readCleanParts,
} from '../../../src/web/presenters/clusters.js'
import { presentOperation } from '../../../src/web/presenters/operations.js'
import { type ActorOptions, getActor, withActorOptions } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount } from '../../options.js'
import { print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

const CLUSTERS_SHOWN = 50

interface CleanOptions extends ActorOptions {
  readonly hide?: boolean
  readonly remove?: boolean
  readonly filter?: boolean
  readonly authors?: 'silence' | 'block' | 'lock'
  readonly pods?: 'limited' | 'blocked'
  readonly except?: readonly string[]
  readonly dryRun?: boolean
  readonly yes?: boolean
}

export function clusterCommands(program: Command): void {
  const clusters = program
    .command('clusters')
    .description('Posts and comments that look like spam, grouped by a common feature.')

  withActorOptions(clusters.command('list'))
    .description('Lists clusters, newest first.')
    .addOption(new Option('--state <state...>', 'only clusters in these states').choices(CLUSTER_STATES))
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clusters list --state open')
    .action(list)

  withActorOptions(clusters.command('show'))
    .argument('<id>', 'the number of the cluster', readCount)
    .description('Shows a cluster with its newest items and its authors.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clusters show 7')
    .action(show)

  withActorOptions(clusters.command('clean'))
    .argument('<id>', 'the number of the cluster', readCount)
    .description('Cleans a cluster with one action. "pod actions undo" reverts it, except for retractions.')
    .option('--hide', 'hide all items')
    .option('--remove', 'remove and retract the items that a local person may retract')
    .option('--filter', 'add a filter that hides later content of this kind')
    .addOption(
      new Option('--authors <kind>', 'restrict the ticked authors; "lock" blocks those of other pods').choices([
        'silence',
        'block',
        'lock',
      ]),
    )
    .addOption(
      new Option('--pods <state>', 'a rule for the pods of the ticked authors').choices(['limited', 'blocked']),
    )
    .option('--except <guid...>', 'items to keep, and people whose items are kept')
    .option('--dry-run', 'only show what would change')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clusters clean 7 --hide --filter --reason "Spam wave" --yes')
    .action(clean)

  withActorOptions(clusters.command('dismiss'))
    .argument('<id>', 'the number of the cluster', readCount)
    .description('Closes a cluster and its case as unfounded.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod clusters dismiss 7 --reason "Invitations to our summer party"')
    .action(dismiss)
}

async function list({ state, ...options }: ActorOptions & { readonly state?: readonly ClusterState[] }): Promise<void> {
  const clusters = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    return (await listSpamClusters(services, actor, { states: state }, { limit: CLUSTERS_SHOWN })).items.map(
      presentCluster,
    )
  })
  const rows = clusters.map(({ id, state: now, kind, items, authors, pods, label }) => {
    return [
      String(id),
      now,
      kind,
      String(items),
      String(authors),
      String(pods),
      label.slice(0, 60).replaceAll('\n', ' '),
    ]
  })
  print(options, clusters, [
    ...table([['cluster', 'state', 'kind', 'items', 'authors', 'pods', 'what'], ...rows]).map(printable),
    clusters.length === 1 ? '1 cluster' : `${clusters.length} clusters`,
  ])
}

async function show(id: number, options: ActorOptions): Promise<void> {
  const cluster = await withPod(async (services) =>
    presentClusterDetails(await readCluster(services, await getActor(services, options, 'moderation'), id)),
  )
  const { newest_items: items, busiest_authors: authors } = cluster
  print(options, cluster, [
    printable(`Cluster ${cluster.id} (${cluster.kind}: ${cluster.label}) is ${cluster.state}.`),
    ...table(
      items.map(({ type, guid, author, text }) => [type, guid, author, text.slice(0, 80).replaceAll('\n', ' ')]),
    ).map(printable),
    ...table(
      authors.map(({ address, items: count, followed }) => [address, `${count} items`, followed ? 'followed' : '']),
    ).map(printable),
    ...(cluster.operation === null ? [] : [`${cluster.operation.done} of ${cluster.operation.total} done`]),
    `${cluster.items} items by ${cluster.authors} people of ${cluster.pods} pods`,
  ])
}

async function clean(id: number, { dryRun, yes, ...options }: CleanOptions): Promise<void> {
  const parts = readCleanParts(options)
  const isEmpty = !parts.hide && !parts.remove && !parts.filter && parts.pods === 'none' && parts.authors === 'none'
  if (isEmpty) throw new CommandError('Add --hide, --remove, --filter, --authors or --pods.')
  const { preview, task } = await withPod(async (services): Promise<Pick<CleanOutcome, 'preview' | 'task'>> => {
    await waitForQueue(services.jobs)
    const actor = await getActor(services, options, 'moderation')
    const plan = await previewCleaning(services, actor, id, parts)
    if (dryRun) return { preview: plan }
    if (!yes) {
      const details = { preview: presentCleaning(plan) }
      throw new Refusal('confirmation_needed', 'Confirm the cleaning.', { details })
    }
    return cleanCluster(services, actor, { id, ...parts, confirm: String(plan.remove) }, options)
  })
  const { hide, remove, people, authors, pods, filter } = preview
  const words = dryRun ? 'Would hide' : task === undefined ? 'Hidden' : 'To be hidden'
  const work = task === undefined ? null : presentOperation(task)
  print(options, { ...presentCleaning(preview), changed: !dryRun, operation: work }, [
    `${words}: ${hide}, removed: ${remove}, by ${people} people.`,
    ...(task === undefined ? [] : [`operation ${task.id} is queued`]),
    ...(authors === 0 ? [] : [`Authors: ${authors}`]),
    ...(pods.length === 0 ? [] : [`Pods: ${pods.join(', ')}`]),
    ...(filter === undefined ? [] : [printable(`Filter: ${filter.kind} ${filter.value}`)]),
  ])
}

async function dismiss(id: number, options: ActorOptions): Promise<void> {
  const { changed } = await withPod(async (services) =>
    dismissCluster(services, await getActor(services, options, 'moderation'), id, options),
  )
  print(options, { id, changed }, [`Cluster ${id} is dismissed.`])
}
