import type { Command } from 'commander'
import { listModerationActions, undoAction } from '../../../src/domain/moderation/actions.js'
import { presentAction } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, getActor, withActorOptions } from '../../actor-options.js'
import { readCount } from '../../options.js'
import { print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

const ACTIONS_SHOWN = 50

interface ListOptions extends ActorOptions {
  readonly target?: string
  readonly inForce?: boolean
  readonly limit: number
}

export function actionCommands(program: Command): void {
  const actions = program.command('actions').description('Actions of moderators and admins.')

  withActorOptions(actions.command('list'))
    .description('Lists actions, newest first.')
    .option('--target <guid>', 'only on this person, post or comment')
    .option('--in-force', 'only those that can be undone')
    .option('--limit <number>', 'at most this many', readCount, ACTIONS_SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod actions list --in-force')
    .action(list)

  withActorOptions(actions.command('undo'))
    .argument('<id>', 'the number of the action', readCount)
    .description('Undoes an action.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod actions undo 12 --reason "A mistake"')
    .action(undo)
}

async function list({ target, inForce: isInForce, limit, ...options }: ListOptions): Promise<void> {
  const actions = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    const { items } = await listModerationActions(services, actor, { target, isInForce }, { limit })
    return items.map(presentAction)
  })
  const rows = actions.map(({ id, kind, target: on, actor, created_at: at, until, undo: { possible } }) => [
    String(id),
    kind,
    on.label,
    actor.name,
    at,
    until ?? '-',
    possible ? 'yes' : 'no',
  ])
  const head = ['action', 'kind', 'target', 'actor', 'at', 'until', 'undo possible']
  print(options, actions, [
    ...table([head, ...rows]).map(printable),
    actions.length === 1 ? '1 action' : `${actions.length} actions`,
  ])
}

async function undo(id: number, { reason, ...options }: ActorOptions): Promise<void> {
  const { changed } = await withPod(async (services) => {
    await waitForQueue(services.jobs)
    return undoAction(services, await getActor(services, options, 'moderation'), id, { reason })
  })
  print(options, { id, changed }, [changed ? `Action ${id} was undone.` : `Action ${id} was undone before.`])
}
