import { Argument, type Command } from 'commander'
import { type ContentTarget, removeContent } from '../../src/domain/moderation/remove-content.js'
import { type ActorOptions, actorOf, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { print } from '../output.js'
import { queueAnswers } from '../queue-answers.js'
import { withPod } from '../with-pod.js'

export function contentCommands(program: Command): void {
  const content = program.command('content').description('Posts and comments.')

  withActorOptions(content.command('remove'))
    .addArgument(new Argument('<type>').choices(['post', 'comment']))
    .argument('<guid>', 'the guid of the post or comment')
    .description('Removes a post or a comment for good, and retracts it on other pods where a local person may do so.')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod content remove post c0ffee00d1e2f3a4 --reason "Spam" --yes')
    .action(remove)
}

async function remove(
  type: ContentTarget['type'],
  guid: string,
  { yes, reason, ...options }: ActorOptions & { readonly yes?: boolean },
): Promise<void> {
  if (!yes) throw new CommandError(`Removing the ${type} ${guid} cannot be undone: add --yes to do it.`)
  const { changed, retracted } = await withPod(async (pod) => {
    await queueAnswers(pod.jobs)
    return removeContent(pod, await actorOf(pod, options, 'moderation'), { type, guid }, { reason })
  })
  const where = retracted ? 'a retraction is sent' : 'from this pod only'
  print(options, { type, guid, changed, retracted }, [
    changed ? `The ${type} was removed, ${where}.` : `The ${type} was removed before.`,
  ])
}
