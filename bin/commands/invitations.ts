import { type Command, Option } from 'commander'
import { createInvitation } from '../../src/domain/accounts/invitations.js'
import { CommandError } from '../command-error.js'
import { readLifetime } from '../options.js'
import { type OutputOptions, print } from '../output.js'
import { withPod } from '../with-pod.js'

const DEFAULT_LIFE_SECONDS = 14 * 86_400
const LONGEST_LIFE_SECONDS = 365 * 86_400

export function invitationCommands(program: Command): void {
  program
    .command('invite')
    .description('Creates an invitation for one sign-up (REGISTRATIONS=invite) and prints its link.')
    .addOption(
      new Option('--expires-in <time>', 'like 12h or 30d').argParser(readLifetime).default(DEFAULT_LIFE_SECONDS, '14d'),
    )
    .option('--note <text>', 'a note for yourself')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod invite --note "for Rosa" --expires-in 7d')
    .action(makeInvitation)
}

async function makeInvitation(options: OutputOptions & { expiresIn: number; note?: string }): Promise<void> {
  const { expiresIn: lifetime, note } = options
  if (lifetime < 1 || lifetime > LONGEST_LIFE_SECONDS) {
    throw new CommandError('An invitation lasts from one second to one year.')
  }
  const made = await withPod(
    async (pod) => ({
      ...(await createInvitation(pod, { lifetime, note })),
      url: pod.config.url,
      registrations: pod.config.registrations,
    }),
    { makesPod: true },
  )
  const address = `${made.url}/users/sign_up?invitation=${made.code}`
  const expires = made.expiresAt.toISOString()
  print(options, { url: address, expires_at: expires }, [
    address,
    `Invitation for one sign-up, expires ${expires}. Save it now; it will not be shown again.`,
    ...(made.registrations === 'invite'
      ? []
      : [`REGISTRATIONS is ${made.registrations}: the invitation has an effect only with REGISTRATIONS=invite.`]),
  ])
}
