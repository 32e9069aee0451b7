import { type Command, Option } from 'commander'
import {
  type DeadLetter,
  type DeadLetterFilter,
  listDeadLetters,
  showDeadLetter,
} from '../../src/jobs/dead-letters/find-dead-letters.js'
import { dropDeadLetters, replayDeadLetters } from '../../src/jobs/dead-letters/replay-dead-letters.js'
import { QUEUES, type QueueName } from '../../src/jobs/queues/queue-names.js'
import type { Pod } from '../../src/pod/pod.js'
import { CommandError } from '../command-error.js'
import { readCount } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { queueAnswers } from '../queue-answers.js'
import { withPod } from '../with-pod.js'

interface FilterOptions extends OutputOptions {
  readonly queue?: QueueName
  readonly fault?: string
  readonly all?: boolean
}

export function deadLetterCommands(program: Command): void {
  const dead = program.command('dead').description('Dead letters: jobs and messages that were given up.')

  withFilter(dead.command('list'))
    .description('Lists dead letters, newest first.')
    .option('--limit <number>', 'at most this many', readCount, 100)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead list --queue inbound')
    .action(list)

  dead
    .command('show <id>')
    .description('Shows one dead letter with its data and error.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead show outbox-17')
    .action(show)

  withFilter(dead.command('replay [id]'))
    .description('Replays dead letters: one by id, those of a queue or fault, or all.')
    .option('--all', 'all of them')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead replay --queue outbound')
    .action(replay)

  withFilter(dead.command('drop [id]'))
    .description('Deletes dead letters: one by id, those of a queue or fault, or all.')
    .option('--all', 'all of them')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod dead drop outbox-17 --yes')
    .action(drop)
}

async function withQueue<Result>(run: (pod: Pod) => Promise<Result>): Promise<Result> {
  return withPod(async (pod) => {
    await queueAnswers(pod.jobs) // else the command itself says that it does not
    return run(pod)
  })
}

function withFilter(command: Command): Command {
  return command
    .addOption(new Option('--queue <name>', 'only those of one queue').choices(QUEUES))
    .option('--fault <fault>', 'only those with this fault')
}

async function list(options: FilterOptions & { limit: number }): Promise<void> {
  const deadLetters = await withQueue((pod) => listDeadLetters(pod, filterOf(undefined, options), options.limit))
  print(options, deadLetters.map(present), [
    ...table(
      deadLetters.map((deadLetter) => [
        deadLetter.id,
        deadLetter.queue,
        deadLetter.name,
        deadLetter.failedAt.toISOString(),
        deadLetter.fault ?? '',
      ]),
    ),
    deadLetters.length === 0
      ? 'There are no dead letters.'
      : deadLetters.length === 1
        ? '1 dead letter'
        : `${deadLetters.length} dead letters`,
  ])
}

async function show(id: string, options: OutputOptions): Promise<void> {
  const deadLetter = await withQueue((pod) => showDeadLetter(pod, id))
  if (deadLetter === undefined) throw new CommandError(`There is no dead letter ${id}.`)
  const { data, payload, trace } = deadLetter
  print(options, { ...present(deadLetter), data, payload, trace }, [
    ...table(Object.entries(present(deadLetter)).map(([name, value]) => [name, String(value ?? '-')])),
    `data: ${JSON.stringify(data, null, 2)}`,
    ...(payload === null ? [] : [`payload: ${payload}`]),
    ...(trace === null ? [] : [trace]),
  ])
}

async function replay(id: string | undefined, options: FilterOptions, command: Command): Promise<void> {
  const filter = chosen(id, options, command)
  const replayed = await withQueue((pod) => replayDeadLetters(pod, filter))
  if (id !== undefined && replayed === 0) throw new CommandError(`There is no dead letter ${id}.`)
  print(options, { replayed }, [`${replayed} ${replayed === 1 ? 'dead letter' : 'dead letters'} replayed.`])
}

async function drop(
  id: string | undefined,
  options: FilterOptions & { yes?: boolean },
  command: Command,
): Promise<void> {
  const filter = chosen(id, options, command)
  if (!options.yes) throw new CommandError('Deleted dead letters cannot be replayed: add --yes to confirm.')
  const dropped = await withQueue((pod) => dropDeadLetters(pod, filter))
  if (id !== undefined && dropped === 0) throw new CommandError(`There is no dead letter ${id}.`)
  print(options, { dropped }, [`${dropped} ${dropped === 1 ? 'dead letter' : 'dead letters'} deleted.`])
}

/** All dead letters need an explicit --all. */
function chosen(id: string | undefined, options: FilterOptions, command: Command): DeadLetterFilter {
  if (id === undefined && options.queue === undefined && options.fault === undefined && !options.all) {
    command.error('error: say which are meant: an id, --queue, --fault or --all')
  }
  return filterOf(id, options)
}

function filterOf(id: string | undefined, { queue, fault }: FilterOptions): DeadLetterFilter {
  return {
    ...(id !== undefined && { id }),
    ...(queue !== undefined && { queue }),
    ...(fault !== undefined && { fault }),
  }
}

function present(deadLetter: DeadLetter) {
  return {
    id: deadLetter.id,
    queue: deadLetter.queue,
    name: deadLetter.name,
    fault: deadLetter.fault,
    attempts: deadLetter.attempts,
    created_at: deadLetter.createdAt.toISOString(),
    failed_at: deadLetter.failedAt.toISOString(),
  }
}
