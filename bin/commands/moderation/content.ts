import { type Command, Option } from 'commander'
import { undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import type { ContentTarget } from '../../../src/domain/moderation/find-content.js'
import { hideContent } from '../../../src/domain/moderation/hide-content.js'
import { readRecordedContent } from '../../../src/domain/moderation/read-content.js'
import type { ActionOptions } from '../../../src/domain/moderation/record-action.js'
import { purgeContent, removeContent } from '../../../src/domain/moderation/remove-content.js'
import { findContentType } from '../../../src/persistence/moderation/hidden-content.js'
import type { Services } from '../../../src/services/services.js'
import { presentContent } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { print, printable, table } from '../../output.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

interface ContentOptions extends ActorOptions {
  readonly type?: ContentTarget['type']
  readonly yes?: boolean
}

type Run = (services: Services, actor: Actor, target: ContentTarget, options: ActionOptions) => Promise<ContentResult>

interface ContentResult {
  readonly changed: boolean
  readonly retracted?: boolean
}

export function contentCommands(program: Command): void {
  const content = program.command('content').description('Posts and comments.')

  command('show', 'Shows a post or a comment, hidden or not. Private ones must have been reported.').action(show)
  command(
    'hide',
    'Hides a post or a comment from all but its author and moderators. Nothing is sent to other pods.',
  ).action(createActionHandler(hideContent, 'hidden'))
  command('remove', 'Removes a post or a comment. It is retracted on other pods where a local person may do so.')
    .option('--yes', 'confirm')
    .action((guid: string, options: ContentOptions) => {
      if (!options.yes) throw new CommandError('What is retracted cannot be brought back: add --yes to remove it.')
      return createActionHandler(removeContent, 'removed')(guid, options)
    })
  withConfirmation(command('purge', 'Deletes a remote post or comment with everything below it.')).action(
    (guid: string, options: ContentOptions) => {
      const purge: Run = (services, actor, target, action) =>
        purgeContent(services, actor, target, { ...action, confirm: options.yes ? guid : undefined })
      return createActionHandler(purge, 'deleted')(guid, options)
    },
  )
  command('undo', 'Undoes the hiding and the removal of a post or a comment.').action(
    createActionHandler(undo, 'shown again'),
  )

  function command(name: string, description: string): Command {
    return withActorOptions(content.command(name))
      .argument('<guid>', 'the guid of the post or comment')
      .addOption(new Option('--type <type>', 'if a post and a comment have this guid').choices(['post', 'comment']))
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod content ${name} c0ffee00d1e2f3a4 --reason "Spam"`)
  }
}

const undo: Run = (services, actor, { type, guid }, options) =>
  undoActionsOnTarget(services, actor, { type, guid, kinds: ['hide', 'remove'] }, options)

/** An unknown guid counts as the guid of a post, so that the use case refuses it. */
async function targetOf({ db }: Services, guid: string, { type }: ContentOptions): Promise<ContentTarget> {
  return { guid, type: type ?? (await findContentType(db, guid)) ?? 'post' }
}

async function show(guid: string, options: ContentOptions): Promise<void> {
  const fields = await withPod(async (services) => {
    const target = await targetOf(services, guid, options)
    return presentContent(
      target,
      await readRecordedContent(services, await getActor(services, options, 'moderation'), target),
      services.config,
    )
  })
  const details = [
    ['author', fields.author.network_id],
    ['public', fields.public ? 'yes' : 'no'],
    ['hidden', fields.hidden ? 'yes' : 'no'],
    ['written', fields.created_at],
    ['text', fields.text],
  ]
  print(options, fields, table(details).map(printable))
}

function createActionHandler(run: Run, done: string) {
  return async (guid: string, { reason, ...options }: ContentOptions): Promise<void> => {
    const { type, changed, retracted } = await withPod(async (services) => {
      await waitForQueue(services.jobs)
      const target = await targetOf(services, guid, options)
      const outcome = await run(services, await getActor(services, options, 'moderation'), target, { reason })
      return { ...target, ...outcome }
    })
    const where = retracted === undefined ? '' : retracted ? ', a retraction is sent' : ', from this pod only'
    print(options, { type, guid, changed, ...(retracted !== undefined && { retracted }) }, [
      changed ? `The ${type} was ${done}${where}.` : `Nothing has changed: the ${type} was ${done} before.`,
    ])
  }
}
