import type { Command } from 'commander'
import { findRemotePerson, forgetPerson } from '../../src/domain/moderation/forget-person.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print } from '../output.js'
import { readAddress } from '../read-named.js'
import { withPod } from '../with-pod.js'

interface ForgetOptions extends OutputOptions {
  readonly yes?: boolean
}

export function remotePeopleCommands(program: Command): void {
  const people = program.command('people').description('People of other pods.')

  people
    .command('forget')
    .argument('<address>', 'the address of a person of another pod', readAddress)
    .description(
      'Deletes a person of another pod with their key, guid, posts, comments, likes, votes, messages, the conversations they began, and their place among contacts. The next message or search makes them known again, with the key that their pod has then.',
    )
    .option('--yes', 'confirm; without it, only prints what would be deleted')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod people forget alice@pod.example --yes')
    .action(forget)
}

async function forget(address: string, options: ForgetOptions): Promise<void> {
  const person = await withPod(async (pod) => {
    const found = await findRemotePerson(pod, address)
    if (options.yes) await forgetPerson(pod, found)
    return found
  })
  const { guid, rows } = person
  const counts = Object.entries(rows)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', ')
  if (!options.yes) {
    throw new CommandError(`This would delete ${address} (${counts}), and cannot be undone: add --yes to do it.`)
  }
  print(options, { address, guid, deleted: rows }, [`${address} was deleted, with ${counts}.`])
}
