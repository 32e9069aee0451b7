import { type Command, Option } from 'commander'
import { createInvitation } from '../../src/domain/accounts/invitations.js'
import { inviteByStaff, listInvitations, recallInvitation } from '../../src/domain/moderation/sign-ups/invitations.js'
import { presentInvitation } from '../../src/web/presenters/invitations.js'
import { type ActorOptions, getActor, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { readCount, readEnd, readLifetime } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

const LISTED = 1_000
const DEFAULT_LIFE_SECONDS = 14 * 86_400
const MAX_LIFETIME_SECONDS = 365 * 86_400

export function invitationCommands(program: Command): void {
  const invitations = program.command('invitations').description('Invitations to sign up.')

  invitations
    .command('list')
    .description('Lists invitations with the accounts that signed up with them, newest first.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod invitations list')
    .action(list)

  withActorOptions(invitations.command('create'))
    .description('Creates an invitation and prints its link, which is not shown again.')
    .option('--uses <number>', 'sign-ups, 1 to 100', readCount, 1)
    .option('--until <time>', 'a day, a time, or a duration from now like 7d; default: 14d', readEnd)
    .option('--note <text>', 'a note for moderators and admins')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod invitations create --uses 10 --note "Choir" --reason "Asked by Rosa"')
    .action(create)

  withActorOptions(invitations.command('recall'))
    .argument('<id>', 'the number of the invitation', readCount)
    .description('Recalls an invitation: its link is no longer valid.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod invitations recall 3 --reason "The link was published"')
    .action(recall)

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

async function list(options: ActorOptions): Promise<void> {
  const invitationPage = await withPod(async (services) =>
    listInvitations(services, await getActor(services, options, 'moderation'), { limit: LISTED }),
  )
  const rows = invitationPage.items.map((each) => [
    String(each.id),
    `${each.used} of ${each.uses}`,
    each.recalledAt === null ? each.expiresAt.toISOString() : 'recalled',
    each.accounts.join(', ') || '-',
    each.note ?? '-',
  ])
  print(options, invitationPage.items.map(presentInvitation), [
    ...table([['id', 'used', 'until', 'accounts', 'note'], ...rows]).map(printable),
    rows.length === 1 ? '1 invitation' : `${rows.length} invitations`,
  ])
}

interface CreateOptions extends ActorOptions {
  readonly uses: number
  readonly until?: Date
  readonly note?: string
}

async function create({ uses, until, note, reason, ...options }: CreateOptions): Promise<void> {
  const { invitation, url } = await withPod(async (services) =>
    inviteByStaff(services, await getActor(services, options, 'moderation'), { uses, until, note }, { reason }),
  )
  print(options, { ...presentInvitation(invitation), url }, [
    url,
    `Invitation ${invitation.id} for ${uses} sign-up${uses === 1 ? '' : 's'}, expires ${invitation.expiresAt.toISOString()}. Save it now; it will not be shown again.`,
  ])
}

async function recall(id: number, { reason, ...options }: ActorOptions): Promise<void> {
  const { changed, invitation } = await withPod(async (services) =>
    recallInvitation(services, await getActor(services, options, 'moderation'), id, { reason }),
  )
  print(options, { changed, ...presentInvitation(invitation) }, [
    changed ? `Invitation ${id} is recalled.` : `Invitation ${id} was recalled before.`,
  ])
}

async function makeInvitation(options: OutputOptions & { expiresIn: number; note?: string }): Promise<void> {
  const { expiresIn: lifetime, note } = options
  if (lifetime < 1 || lifetime > MAX_LIFETIME_SECONDS) {
    throw new CommandError('An invitation must last from one second to one year.')
  }
  const invitation = await withPod(
    async (services) => ({
      ...(await createInvitation(services, { lifetime, note })),
      url: services.config.url,
      registrations: services.config.registrations,
    }),
    { makesPod: true },
  )
  const address = `${invitation.url}/users/sign_up?invitation=${invitation.code}`
  const expires = invitation.expiresAt.toISOString()
  print(options, { url: address, expires_at: expires }, [
    address,
    `Invitation for one sign-up, expires ${expires}. Save it now; it will not be shown again.`,
    ...(invitation.registrations === 'invite'
      ? []
      : [`REGISTRATIONS is ${invitation.registrations}: the invitation has an effect only with REGISTRATIONS=invite.`]),
  ])
}
