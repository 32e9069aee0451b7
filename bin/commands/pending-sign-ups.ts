import type { Command } from 'commander'
import { approveSignUp, rejectSignUp } from '../../src/domain/accounts/sign-ups/open-sign-up.js'
import { endUnattended } from '../../src/domain/accounts/sign-ups/unattended.js'
import { listUndecidedSignUps, type PendingSignUp } from '../../src/persistence/accounts/pending-sign-ups.js'
import { type ActorOptions, actorOf, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { readCount } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

const LISTED = 1_000

/** `pod user pending`: sign-ups that wait for a moderator. */
export function pendingCommands(user: Command): void {
  const pending = user.command('pending').description('Sign-ups that wait for a decision (SIGN_UP_APPROVAL=on).')
  addDecisionCommands(pending, 'user pending')
}

/** `pod sign-ups`: the same, and the end of an approval that has begun by itself. */
export function signUpCommands(program: Command): void {
  const signUps = program.command('sign-ups').description('Sign-ups that wait for a decision.')
  addDecisionCommands(signUps, 'sign-ups')

  withActorOptions(signUps.command('attended'))
    .description('Accepts sign-ups without a decision again, after no moderator was active (UNATTENDED_DAYS).')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod sign-ups attended --reason "We are back"')
    .action(attend)
}

function addDecisionCommands(pending: Command, name: string): void {
  pending
    .command('list')
    .description('Lists the sign-ups that wait, newest first.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  pod ${name} list`)
    .action(list)

  pending
    .command('show')
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Shows one sign-up with its reason.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  pod ${name} show 3`)
    .action(show)

  withActorOptions(pending.command('approve'))
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Opens the account, or lets its e-mail address be confirmed first.')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  pod ${name} approve 3 --reason "Known from the choir"`)
    .action(approve)

  withActorOptions(pending.command('reject'))
    .argument('<id>', 'the number of the sign-up', readCount)
    .description('Refuses the sign-up: its name is free, its data goes, and a mail says so.')
    .option('--message <text>', 'a sentence for the person')
    .option('--json', 'print JSON')
    .addHelpText('after', `\nExample:\n  pod ${name} reject 3 --reason "Advertising"`)
    .action(reject)
}

function present({ id, username, email, confirmedAt, language, reason, network, createdAt }: PendingSignUp) {
  const confirmed = confirmedAt !== null
  return { id, username, email, confirmed, language, reason, network, created_at: createdAt.toISOString() }
}

function listWaiting(): Promise<readonly PendingSignUp[]> {
  return withPod(async (pod) => (await listUndecidedSignUps(pod.db, { limit: LISTED })).items)
}

async function list(options: OutputOptions): Promise<void> {
  const waiting = (await listWaiting()).map(present)
  const rows = waiting.map(({ id, username, email, confirmed, created_at }) => [
    String(id),
    username ?? '',
    email ?? '',
    confirmed ? 'confirmed' : '',
    created_at,
  ])
  print(options, waiting, (rows.length === 0 ? ['Nobody waits.'] : table(rows)).map(printable))
}

async function show(id: number, options: OutputOptions): Promise<void> {
  const found = (await listWaiting()).find((row) => row.id === id)
  if (found === undefined) throw new CommandError('There is no such sign-up that waits for a decision.')
  const shown = present(found)
  print(
    options,
    shown,
    table(Object.entries(shown).map(([name, value]) => [name, String(value ?? 'none')])).map(printable),
  )
}

async function approve(id: number, options: ActorOptions): Promise<void> {
  const { reason = 'Approved with pod user pending.' } = options
  const { opened } = await withPod(async (pod) =>
    approveSignUp(pod, await actorOf(pod, options, 'moderation'), id, { reason }),
  )
  const line = opened ? 'The account is open.' : 'The account opens when its e-mail address is confirmed.'
  print(options, { id, opened }, [line])
}

async function reject(id: number, options: ActorOptions & { readonly message?: string }): Promise<void> {
  const { reason = 'Rejected with pod user pending.', message: answer } = options
  await withPod(async (pod) => rejectSignUp(pod, await actorOf(pod, options, 'moderation'), id, { reason, answer }))
  print(options, { id, rejected: true }, ['The sign-up is rejected.'])
}

async function attend(options: ActorOptions): Promise<void> {
  const { changed } = await withPod(async (pod) =>
    endUnattended(pod, await actorOf(pod, options, 'administration'), { reason: options.reason }),
  )
  print(options, { changed }, [
    changed ? 'People can sign up without a decision again.' : 'Sign-ups did not wait because of UNATTENDED_DAYS.',
  ])
}
