import { type Command, Option } from 'commander'
import { applyFilter } from '../../../src/domain/moderation/filters/apply-filter.js'
import { dryRunFilter } from '../../../src/domain/moderation/filters/dry-run.js'
import {
  addFilter,
  changeFilter,
  type FilterInput,
  type FilterOutcome,
  listModerationFilters,
  type NewFilter,
  removeFilter,
} from '../../../src/domain/moderation/filters/filters.js'
import { Refusal } from '../../../src/domain/refusals.js'
import {
  FILTER_ACTIONS,
  FILTER_FIELDS,
  FILTER_KINDS,
  FILTER_ORIGINS,
  FILTER_STATES,
  type FilterRule,
} from '../../../src/persistence/moderation/filters.js'
import { presentDryRun, presentFilter } from '../../../src/web/presenters/filters.js'
import { presentOperation } from '../../../src/web/presenters/operations.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount } from '../../options.js'
import { print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

const FILTERS_SHOWN = 100

interface RuleOptions extends ActorOptions {
  readonly fields?: FilterRule['fields'][number][]
  readonly origin?: FilterRule['origin']
  readonly accountAge?: number
  readonly followed?: boolean
  readonly private?: boolean
  readonly action?: FilterRule['action']
  readonly state?: FilterRule['state']
}

export function filterCommands(program: Command): void {
  const filters = program.command('filters').description('Filters of posts, comments, profiles and messages.')
  const kindArgument = FILTER_KINDS.join(', ')

  withActorOptions(filters.command('list'))
    .description('Lists filters, newest first, with their matches of the last 30 days.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod filters list')
    .action(list)

  withRuleOptions(filters.command('add'))
    .argument('<kind>', kindArgument)
    .argument('<value>', 'what is searched')
    .description('Adds a filter. In the default state "trial", matches are only counted.')
    .addHelpText('after', '\nExample:\n  pod filters add link_host spam.example --action flag --reason "Spam wave"')
    .action(add)

  withRuleOptions(filters.command('test'))
    .argument('<kind>', kindArgument)
    .argument('<value>', 'what is searched')
    .option('--days <number>', 'read the content of the last <number> days', readCount, 7)
    .description('Shows the stored content that a filter would match. Changes nothing.')
    .addHelpText('after', '\nExample:\n  pod filters test word casino --days 30')
    .action(test)

  withRuleOptions(filters.command('set'))
    .argument('<id>', 'the number of the filter', readCount)
    .description('Changes a filter. Options that are not given stay unchanged.')
    .addHelpText('after', '\nExample:\n  pod filters set 7 --state active --reason "No wrong hits in a week"')
    .action((id: number, options: RuleOptions) =>
      change(options, (services, actor) => changeFilter(services, actor, { id, ...inputOf(options) }, options)),
    )

  withConfirmation(withActorOptions(filters.command('apply')))
    .argument('<id>', 'the number of the filter', readCount)
    .option('--days <number>', 'apply it to the content of the last <number> days', readCount, 7)
    .option('--json', 'print JSON')
    .description('Applies a filter to stored posts and comments: opens cases, or hides them as one action.')
    .addHelpText('after', '\nExample:\n  pod filters apply 7 --days 30 --reason "Spam wave" --yes')
    .action(apply)

  withActorOptions(filters.command('remove'))
    .argument('<id>', 'the number of the filter', readCount)
    .description('Removes a filter and its matches. Its effects stay.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod filters remove 7 --reason "Too many wrong hits"')
    .action((id: number, options: ActorOptions) =>
      change(options, (services, actor) => removeFilter(services, actor, id, options)),
    )
}

function withRuleOptions(command: Command): Command {
  return withActorOptions(command)
    .addOption(new Option('--fields <field...>', 'what is searched; default: everything').choices(FILTER_FIELDS))
    .addOption(new Option('--origin <origin>', 'of which people; default: both').choices(FILTER_ORIGINS))
    .option('--account-age <days>', 'only people known for less than <days> days', readCount)
    .option('--followed', 'also people whom a local user follows')
    .option('--no-followed', 'not people whom a local user follows (default)')
    .option('--private', 'also match private content; its text is not stored')
    .option('--no-private', 'only public content (default)')
    .addOption(new Option('--action <action>', 'what a hit causes; default: count').choices(FILTER_ACTIONS))
    .addOption(new Option('--state <state>', 'default: trial').choices(FILTER_STATES))
    .option('--json', 'print JSON')
}

function inputOf({
  fields,
  origin,
  accountAge,
  followed,
  private: isPrivate,
  action,
  state,
}: RuleOptions): FilterInput {
  return {
    ...(fields !== undefined && { fields }),
    ...(origin !== undefined && { origin }),
    ...(accountAge !== undefined && { accountAgeDays: accountAge }),
    ...(followed !== undefined && { exemptFollowed: !followed }),
    ...(isPrivate !== undefined && { isPrivate }),
    ...(action !== undefined && { action }),
    ...(state !== undefined && { state }),
  }
}

function newFilterOf(kind: string, value: string, options: RuleOptions): NewFilter {
  const knownKind = FILTER_KINDS.find((each) => each === kind)
  if (knownKind === undefined) throw new CommandError(`There are these kinds of filters: ${FILTER_KINDS.join(', ')}.`)
  return { action: 'count', ...inputOf(options), kind: knownKind, value }
}

async function list(options: ActorOptions): Promise<void> {
  const filters = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    return (await listModerationFilters(services, actor, { limit: FILTERS_SHOWN })).items.map(presentFilter)
  })
  const rows = filters.map(({ id, kind, value, action, state, hits_30_days: hits }) => {
    return [String(id), kind, value, action, state, String(hits)]
  })
  print(options, filters, [
    ...table([['filter', 'kind', 'value', 'action', 'state', 'hits'], ...rows]).map(printable),
    filters.length === 1 ? '1 filter' : `${filters.length} filters`,
  ])
}

async function add(kind: string, value: string, options: RuleOptions): Promise<void> {
  const filter = newFilterOf(kind, value, options)
  await change(options, (services, actor) => addFilter(services, actor, filter, options))
}

async function test(kind: string, value: string, options: RuleOptions & { readonly days: number }): Promise<void> {
  const filter = newFilterOf(kind, value, options)
  const dryRun = await withPod(async (services) =>
    presentDryRun(await dryRunFilter(services, await getActor(services, options, 'moderation'), filter, options)),
  )
  const { hits, authors, pods, followed, samples, scanned_from: from, complete } = dryRun
  print(options, dryRun, [
    ...table(samples.map(({ type, author, text }) => [type, author, (text ?? '-').replaceAll('\n', ' ')])).map(
      printable,
    ),
    `${hits} hits by ${authors} people of ${pods} pods; local users follow ${followed} of them.`,
    complete ? `All content since ${from} was read.` : `Only content since ${from} was read: the limit is reached.`,
  ])
}

async function apply(
  id: number,
  { yes, days, ...options }: ActorOptions & { readonly days: number; readonly yes?: boolean },
): Promise<void> {
  const { changed, hits, complete, task } = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    const run = (confirm?: string) => applyFilter(services, actor, id, { ...options, days, confirm })
    return run().catch((error: unknown) => {
      if (!yes || !(error instanceof Refusal) || error.reason !== 'confirmation_needed') throw error
      const { hits: count } = error.details['preview'] as { readonly hits: number }
      return run(String(count))
    })
  })
  const work = task === undefined ? null : presentOperation(task)
  print(options, { id, changed, hits, complete, operation: work }, [
    `Filter ${id} has hit ${hits} posts and comments${complete ? '' : '; older content was not read'}.`,
    ...(task === undefined ? [] : [`operation ${task.id} is queued`]),
  ])
}

type Change = (
  services: Parameters<Parameters<typeof withPod>[0]>[0],
  actor: Awaited<ReturnType<typeof getActor>>,
) => Promise<FilterOutcome>

async function change(options: ActorOptions, run: Change): Promise<void> {
  const { changed, filter } = await withPod(async (services) =>
    run(services, await getActor(services, options, 'moderation')),
  )
  const { id, kind, value, action, state } = filter
  print(options, { changed, filter: presentFilter(filter) }, [
    printable(`Filter ${id} (${kind}: ${value}, ${action}, ${state}) ${changed ? 'changed' : 'is unchanged'}.`),
  ])
}
