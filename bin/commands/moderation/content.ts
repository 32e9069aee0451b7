import { Argument, type Command } from 'commander'
import { undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import type { ContentTarget } from '../../../src/domain/moderation/find-content.js'
import { hideContent } from '../../../src/domain/moderation/hide-content.js'
import { readRecordedContent } from '../../../src/domain/moderation/read-content.js'
import type { ActionOptions } from '../../../src/domain/moderation/record-action.js'
import { purgeContent, removeContent } from '../../../src/domain/moderation/remove-content.js'
import type { Pod } from '../../../src/pod/pod.js'
import { presentContent } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, findActor, withActorOptions } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { print, printable, table } from '../../output.js'
import { queueAnswers } from '../../queue-answers.js'
import { withPod } from '../../with-pod.js'

interface ContentOptions extends ActorOptions {
  readonly yes?: boolean
}

type Run = (pod: Pod, actor: Actor, target: ContentTarget, options: ActionOptions) => Promise<ContentResult>

interface ContentResult {
  readonly changed: boolean
  readonly retracted?: boolean
}

export function contentCommands(program: Command): void {
  const content = program.command('content').description('Posts and comments.')

  command('show', 'Shows a post or a comment, hidden or not. Private ones must have been reported.').action(show)
  command('hide', 'Hides a post or a comment from everyone but its author. Nothing is sent to other pods.').action(
    (type: ContentTarget['type'], guid: string, options: ContentOptions) =>
      act({ type, guid }, options, hideContent, 'hidden'),
  )
  command('remove', 'Removes a post or a comment. It is retracted on other pods where a local person may do so.')
    .option('--yes', 'confirm')
    .action((type: ContentTarget['type'], guid: string, options: ContentOptions) => {
      if (!options.yes)
        throw new CommandError(`A ${type} that is retracted cannot be brought back: add --yes to remove it.`)
      return act({ type, guid }, options, removeContent, 'removed')
    })
  command('purge', 'Deletes a remote post or comment with everything below it.')
    .option('--yes', 'confirm')
    .action((type: ContentTarget['type'], guid: string, options: ContentOptions) => {
      if (!options.yes) throw new CommandError(`Deleting the ${type} ${guid} cannot be undone: add --yes to do it.`)
      const purge: Run = (pod, actor, target, action) => purgeContent(pod, actor, target, { ...action, confirm: guid })
      return act({ type, guid }, options, purge, 'deleted')
    })
  command('undo', 'Undoes the hiding and the removal of a post or a comment.').action(
    (type: ContentTarget['type'], guid: string, options: ContentOptions) =>
      act({ type, guid }, options, undo, 'shown again'),
  )

  function command(name: string, description: string): Command {
    return withActorOptions(content.command(name))
      .addArgument(new Argument('<type>').choices(['post', 'comment']))
      .argument('<guid>', 'the guid of the post or comment')
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod content ${name} post c0ffee00d1e2f3a4 --reason "Spam"`)
  }
}

const undo: Run = (pod, actor, { type, guid }, options) =>
  undoActionsOnTarget(pod, actor, { type, guid, kinds: ['hide', 'remove'] }, options)

async function show(type: ContentTarget['type'], guid: string, options: ContentOptions): Promise<void> {
  const target = { type, guid }
  const shown = await withPod(async (pod) =>
    presentContent(
      target,
      await readRecordedContent(pod, await findActor(pod, options, 'moderation'), target),
      pod.config,
    ),
  )
  const facts = [
    ['author', shown.author.network_id],
    ['public', shown.public ? 'yes' : 'no'],
    ['hidden', shown.hidden ? 'yes' : 'no'],
    ['written', shown.created_at],
    ['text', shown.text],
  ]
  print(options, shown, table(facts).map(printable))
}

async function act(
  { type, guid }: ContentTarget,
  { reason, ...options }: ContentOptions,
  run: Run,
  done: string,
): Promise<void> {
  const { changed, retracted } = await withPod(async (pod) => {
    await queueAnswers(pod.jobs)
    return run(pod, await findActor(pod, options, 'moderation'), { type, guid }, { reason })
  })
  const where = retracted === undefined ? '' : retracted ? ', a retraction is sent' : ', from this pod only'
  print(options, { type, guid, changed, ...(retracted !== undefined && { retracted }) }, [
    changed ? `The ${type} was ${done}${where}.` : `Nothing has changed: the ${type} was ${done} before.`,
  ])
}
