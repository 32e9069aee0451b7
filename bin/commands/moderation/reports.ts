import { type Command, Option } from 'commander'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import { listModerationCases, readModerationCase } from '../../../src/domain/moderation/cases.js'
import {
  addCaseNote,
  type CaseChange,
  dismissCase,
  releaseCase,
  reopenCase,
  resolveCase,
  takeCase,
} from '../../../src/domain/moderation/change-case.js'
import { forwardCase } from '../../../src/domain/moderation/forward-case.js'
import type { CaseState } from '../../../src/persistence/moderation/cases.js'
import type { Services } from '../../../src/services/services.js'
import { presentCaseDetails, presentListedCase } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, getActor, withActorOptions } from '../../actor-options.js'
import { readCount } from '../../options.js'
import { print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

const CASES_SHOWN = 50

interface ListOptions extends ActorOptions {
  readonly state?: readonly CaseState[]
  readonly limit: number
}

interface ChangeOptions extends ActorOptions {
  readonly force?: boolean
  readonly withoutAction?: boolean
  readonly ignoreFurther?: boolean
}

type Change = (services: Services, actor: Actor, id: number, options: ChangeOptions) => Promise<CaseChange>

export function reportCommands(program: Command): void {
  const reports = program.command('reports').description('Reports of users, one case per reported object.')

  withActorOptions(reports.command('list'))
    .description('Lists cases: open ones first, those with more reporters first.')
    .addOption(
      new Option('--state <state...>', 'only cases in these states').choices([
        'open',
        'taken',
        'resolved',
        'dismissed',
      ]),
    )
    .option('--limit <number>', 'at most this many', readCount, CASES_SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod reports list --state open')
    .action(list)

  withActorOptions(reports.command('show'))
    .argument('<id>', 'the number of the case', readCount)
    .description('Shows a case with its text, reports and history.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod reports show 7')
    .action(show)

  command('take', 'Takes an open case.', takeCase).option('--force', 'also if another moderator has taken it')
  command('release', 'Makes a taken case open again.', releaseCase)
  command('resolve', 'Closes a case after an action.', resolveCase, ' --reason "The post is hidden"').option(
    '--without-action',
    'resolve the case even if no action was taken',
  )
  command('dismiss', 'Closes a case as unfounded.', dismissCase, ' --reason "An opinion"').option(
    '--ignore-further',
    'only count later reports; do not reopen the case',
  )
  command('reopen', 'Opens a closed case again.', reopenCase, ' --reason "New facts"')

  withActorOptions(reports.command('note'))
    .argument('<id>', 'the number of the case', readCount)
    .argument('<text>', 'the note, for other moderators')
    .description('Adds a note to a case.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod reports note 7 "The author was warned last week."')
    .action((id: number, text: string, options: ActorOptions) =>
      change(id, options, (services, actor) => addCaseNote(services, actor, id, { text })),
    )

  withActorOptions(reports.command('forward'))
    .argument('<id>', 'the number of the case', readCount)
    .option('--include-reason', 'with the reasons of the reports')
    .addOption(new Option('--via <way>', 'sends the text').choices(['conversation']))
    .description('Prints a text for the operator of the pod of the author; sends it only with --via.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod reports forward 7 --include-reason')
    .action(forward)

  function command(name: string, description: string, run: Change, example = ''): Command {
    return withActorOptions(reports.command(name))
      .argument('<id>', 'the number of the case', readCount)
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod reports ${name} 7${example}`)
      .action((id: number, options: ChangeOptions) => change(id, options, run))
  }
}

async function list({ state, limit, ...options }: ListOptions): Promise<void> {
  const cases = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    const { items } = await listModerationCases(services, actor, { states: state }, { limit })
    return items.map((each) => presentListedCase(each, services.config))
  })
  const rows = cases.map(({ id, state: now, target, reporter_count: reporters, first_reported_at: since }) => [
    String(id),
    now,
    target.type,
    target.author?.network_id ?? '-',
    `${reporters}`,
    since,
  ])
  print(options, cases, [
    ...table([['case', 'state', 'type', 'author', 'reporters', 'since'], ...rows]).map(printable),
    cases.length === 1 ? '1 case' : `${cases.length} cases`,
  ])
}

async function show(id: number, options: ActorOptions): Promise<void> {
  const reportCase = await withPod(async (services) =>
    presentCaseDetails(
      await readModerationCase(services, await getActor(services, options, 'moderation'), id),
      services.config,
    ),
  )
  const { target, reports, history } = reportCase
  const details = [
    ['case', String(reportCase.id)],
    ['state', reportCase.taken_by === null ? reportCase.state : `${reportCase.state} by ${reportCase.taken_by}`],
    ['target', `${target.type} ${target.guid}`],
    ['author', target.author?.network_id ?? '-'],
    ['page', target.url ?? '-'],
    ['deleted by', target.deleted ?? '-'],
    ['text', target.text ?? '-'],
    ...reports.map(({ reporter, reason }) => ['report', `${reporter.username}: ${reason}`]),
    ...history.map(({ at, actor, event, text }) => [at, [event, actor ?? '', text ?? ''].join(' ').trim()]),
  ]
  print(options, reportCase, table(details).map(printable))
}

async function forward(
  id: number,
  options: ActorOptions & { readonly includeReason?: boolean; readonly via?: 'conversation' },
): Promise<void> {
  const { includeReason, via, reason } = options
  const { text, podmin, canConverse, mailto, sent } = await withPod(async (services) =>
    forwardCase(services, await getActor(services, options, 'moderation'), id, { includeReason, via, reason }),
  )
  print(options, { text, ways: { podmin, conversation: canConverse, mailto }, sent }, [
    ...text.split('\n').map(printable),
    '',
    printable(`Operator: ${podmin ?? 'not known'}${canConverse ? ' (--via conversation reaches them)' : ''}`),
    ...(sent ? ['The text was sent.'] : []),
  ])
}

async function change(id: number, options: ChangeOptions, run: Change): Promise<void> {
  const { changed, case: after } = await withPod(async (services) =>
    run(services, await getActor(services, options, 'moderation'), id, options),
  )
  print(options, { id, changed, state: after.state }, [`Case ${id} is ${after.state}.`])
}
