import type { Command } from 'commander'
import {
  dropQuarantine,
  listQuarantine,
  type QuarantineOutcome,
  readQuarantined,
  readQuarantinedPayload,
  releaseQuarantine,
  replayQuarantine,
} from '../../../src/domain/operations/quarantine.js'
import { countQuarantined } from '../../../src/persistence/inbound/quarantine.js'
import { presentOperation, presentQuarantined } from '../../../src/web/presenters/operations.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { readCount } from '../../options.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

interface FilterOptions extends ActorOptions {
  readonly fault?: string
  readonly host?: string
}

interface ShowOptions extends ActorOptions {
  readonly payload?: boolean
}

const SHOWN = 50

export function quarantineCommands(program: Command): void {
  const quarantine = program.command('quarantine').description('Rejected messages of other pods.')

  withFilter(quarantine.command('list'))
    .description('Lists rejected messages, newest first.')
    .option('--limit <number>', 'at most this many', readCount, SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod quarantine list --host r.example')
    .action(list)

  withActorOptions(quarantine.command('show'))
    .argument('<id>', 'the number of the message', readCount)
    .description('Shows a rejected message; with --payload its content, which the audit log records.')
    .option('--payload', 'print only the content, as it was received')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod quarantine show 17')
    .action(show)

  changeCommand('replay', 'Receives rejected messages again, with the current rules.').action(replay)
  changeCommand('release', 'Receives messages that a filter has rejected, once without filters.').action(release)
  withConfirmation(changeCommand('drop', 'Deletes rejected messages.')).action(drop)

  function changeCommand(name: string, description: string): Command {
    return withActorOptions(withFilter(quarantine.command(name)))
      .argument('[id]', 'the number of one message', readCount)
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod quarantine ${name} 17 --reason "The rule was wrong"`)
  }
}

function withFilter(command: Command): Command {
  return command
    .option('--fault <fault>', 'only those with this fault')
    .option('--host <host>', 'only public messages that claim this host')
}

async function list({ fault, host, limit, ...options }: FilterOptions & { limit: number }): Promise<void> {
  const { items } = await withPod(async (services) =>
    listQuarantine(services, await getActor(services, options, 'administration'), { fault, host }, { limit }),
  )
  const rows = items.map(({ id, receivedAt, fault: why, author, source, times, result, state }) => [
    String(id),
    receivedAt.toISOString(),
    why,
    author ?? source ?? '-',
    String(times),
    result ?? state,
  ])
  print(options, items.map(presentQuarantined), [
    ...table([['message', 'received', 'fault', 'from', 'times', 'state'], ...rows]).map(printable),
    items.length === 1 ? '1 message' : `${items.length} messages`,
  ])
}

async function show(id: number, { payload, ...options }: ShowOptions): Promise<void> {
  if (payload) {
    const text = await withPod(async (services) =>
      readQuarantinedPayload(services, await getActor(services, options, 'administration'), id, options.reason),
    )
    print(options, { payload: text }, [text])
    return
  }
  const message = presentQuarantined(
    await withPod(async (services) =>
      readQuarantined(services, await getActor(services, options, 'administration'), id),
    ),
  )
  const rows = Object.entries(message).map(([name, value]) => [name.replaceAll('_', ' '), String(value ?? '-')])
  print(options, message, table(rows).map(printable))
}

async function replay(id: number | undefined, options: FilterOptions, command: Command): Promise<void> {
  const change = readFilter(id, options, command)
  const outcome = await withPod(async (services) =>
    replayQuarantine(services, await getActor(services, options, 'administration'), change),
  )
  printOutcome(options, 'replayed', outcome)
}

async function release(id: number | undefined, options: FilterOptions, command: Command): Promise<void> {
  const change = readFilter(id, options, command)
  const outcome = await withPod(async (services) =>
    releaseQuarantine(services, await getActor(services, options, 'administration'), change),
  )
  printOutcome(options, 'released', outcome)
}

async function drop(
  id: number | undefined,
  options: FilterOptions & { readonly yes?: boolean },
  command: Command,
): Promise<void> {
  const change = readFilter(id, options, command)
  const outcome = await withPod(async (services) => {
    const { reason: _, ...filter } = change
    const confirm = options.yes ? String(await countQuarantined(services.db, filter)) : undefined
    return dropQuarantine(services, await getActor(services, options, 'administration'), { ...change, confirm })
  })
  printOutcome(options, 'dropped', outcome)
}

const VERBS = { replayed: 'replayed', released: 'released', dropped: 'deleted' } as const

function printOutcome(options: OutputOptions, name: keyof typeof VERBS, { count, task }: QuarantineOutcome): void {
  if (task === undefined) {
    print(options, { [name]: count }, [`${count} ${count === 1 ? 'message' : 'messages'} ${VERBS[name]}.`])
  } else {
    print(options, presentOperation(task), [`operation ${task.id} is queued, for ${count} messages`])
  }
}

function readFilter(id: number | undefined, { fault, host, reason }: FilterOptions, command: Command) {
  if (id === undefined && fault === undefined && host === undefined) {
    command.error('error: say which are meant: an id, --fault or --host')
  }
  return { ...(id !== undefined && { ids: [id] }), fault, host, reason }
}
