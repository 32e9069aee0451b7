import type { Command } from 'commander'
import {
  approveSignUp,
  listSignUps,
  readSignUp,
  rejectSignUp,
} from '../../src/domain/accounts/sign-ups/open-sign-up.js'
import { endUnattendedPeriod } from '../../src/domain/accounts/sign-ups/unattended.js'
import type { PendingSignUp } from '../../src/persistence/accounts/pending-sign-ups.js'
import { type ActorOptions, getActor, withActorOptions } from '../actor-options.js'
import { readCount } from '../options.js'
import { print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

const LISTED = 1_000

/** `pod sign-ups`: sign-ups that wait for a moderator. */
export function signUpCommands(program: Command): void {
  addSignUpCommands(program.command('sign-ups'), 'pod sign-ups')
}

/** `pod user pending`: the same list. */
export function pendingCommands(user: Command): void {
  addSignUpCommands(user.command('pending'), 'pod user pending')
}

function addSignUpCommands(pending: Command, name: string): void {
  pending.description('Sign-ups that wait for approval (SIGN_UP_APPROVAL=on).')

  withActorOptions(pending.command('list'))
    .description('Lists the sign-ups that wait for approval, newest first.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  ${name} list`)
    .action(list)

  withActorOptions(pending.command('show'))
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Shows one sign-up with its reason.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  ${name} show 3`)
    .action(show)

  withActorOptions(pending.command('approve'))
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Opens the account, after the confirmation of its e-mail address if that is required.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  ${name} approve 3 --reason "Known from the choir"`)
    .action((id, options) => approve(id, withDefaultReason(options, `Approved with ${name}.`)))

  withActorOptions(pending.command('reject'))
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Rejects the sign-up: its data is deleted, its name is free again, and the person gets a mail.')
    .option('--message <text>', 'a sentence for the person')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  ${name} reject 3 --reason "Advertising"`)
    .action((id, options) => reject(id, withDefaultReason(options, `Rejected with ${name}.`)))

  withActorOptions(pending.command('attended'))
    .description('Accepts sign-ups without approval again, after UNATTENDED_DAYS has taken effect.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  ${name} attended --reason "We are back"`)
    .action(endUnattendedMode)
}

function withDefaultReason<Options extends ActorOptions>(options: Options, reason: string): Options {
  return { reason, ...options }
}

function present({ id, username, email, confirmedAt, language, reason, network, createdAt }: PendingSignUp) {
  const confirmed = confirmedAt !== null
  return { id, username, email, confirmed, language, reason, network, created_at: createdAt.toISOString() }
}

async function list(options: ActorOptions): Promise<void> {
  const { items } = await withPod(async (services) =>
    listSignUps(services, await getActor(services, options, 'moderation'), { limit: LISTED }),
  )
  const signUps = items.map(present)
  const rows = signUps.map(({ id, username, email, confirmed, created_at }) => [
    String(id),
    username ?? '',
    email ?? '',
    confirmed ? 'confirmed' : '',
    created_at,
  ])
  print(options, signUps, (rows.length === 0 ? ['No sign-up is waiting.'] : table(rows)).map(printable))
}

async function show(id: number, options: ActorOptions): Promise<void> {
  const signUp = await withPod(async (services) =>
    readSignUp(services, await getActor(services, options, 'moderation'), id),
  )
  const fields = present(signUp)
  print(
    options,
    fields,
    table(Object.entries(fields).map(([name, value]) => [name, String(value ?? 'none')])).map(printable),
  )
}

async function approve(id: number, options: ActorOptions): Promise<void> {
  const { reason } = options
  const { opened } = await withPod(async (services) =>
    approveSignUp(services, await getActor(services, options, 'moderation'), id, { reason }),
  )
  const line = opened ? 'The account is open.' : 'The account opens when its e-mail address is confirmed.'
  print(options, { id, opened }, [line])
}

async function reject(id: number, options: ActorOptions & { readonly message?: string }): Promise<void> {
  const { reason, message: answer } = options
  await withPod(async (services) =>
    rejectSignUp(services, await getActor(services, options, 'moderation'), id, { reason, answer }),
  )
  print(options, { id, rejected: true }, ['The sign-up is rejected.'])
}

async function endUnattendedMode(options: ActorOptions): Promise<void> {
  const { changed } = await withPod(async (services) =>
    endUnattendedPeriod(services, await getActor(services, options, 'administration'), { reason: options.reason }),
  )
  print(options, { changed }, [changed ? 'Sign-ups no longer require approval.' : 'UNATTENDED_DAYS was not in effect.'])
}
