import { randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { Argument, type Command, Option } from 'commander'
import { type Account, findUser, listUsers, ROLES, type RoleChoice } from '../../src/domain/accounts/accounts.js'
import { createUserByOperator, getEmail, setEmail } from '../../src/domain/accounts/change-email.js'
import { resetPasswordByOperator } from '../../src/domain/accounts/operator/operator-changes.js'
import { createResetLink } from '../../src/domain/accounts/passwords/password-reset.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { changeRole as setRole } from '../../src/domain/moderation/change-role.js'
import { type ActorOptions, getActor, withActorOptions } from '../actor-options.js'
import { CommandError } from '../command-error.js'
import { readCount } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { withPod } from '../with-pod.js'
import { pendingCommands } from './sign-ups.js'
import { userAccessCommands } from './user-access.js'
import { userSettingsCommands } from './user-settings.js'

interface PasswordOptions extends OutputOptions {
  readonly password?: string
  readonly passwordStdin?: boolean
}

const PAGE = 100

export function peopleCommands(program: Command): void {
  const user = program.command('user').description('Local accounts.')

  withPasswordOptions(user.command('create <username>'))
    .description('Creates an account with keys and the four default aspects, without confirmation or approval.')
    .option('--email <address>', 'the e-mail address of the account, stored as confirmed')
    .option('--language <tag>', 'language of pages, mails and aspect names; default: DEFAULT_LANGUAGE')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user create alice --email alice@mail.example --language de')
    .action(create)

  user
    .command('list')
    .description('Lists open and closed accounts by name.')
    .option('--after <username>', 'start after this name')
    .option('--limit <number>', 'at most this many; default: all', readCount)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user list --limit 20')
    .action(list)

  user
    .command('show <username>')
    .description('Shows one account.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user show alice')
    .action(show)

  withPasswordOptions(user.command('password <username>'))
    .description(
      'Sets a new password and ends all access: sessions, tokens of applications and of the operator, live streams.',
    )
    .addOption(
      new Option('--link', 'instead, print a link to set a new password; it is valid for 24 hours').conflicts([
        'password',
        'passwordStdin',
      ]),
    )
    .option('--keep-applications', 'end browser sessions only; tokens stay valid')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  echo "correct horse battery" | pod user password alice --password-stdin')
    .action(changePassword)

  pendingCommands(user)

  user
    .command('email <username> [address]')
    .description('Shows or changes the e-mail address of an account. A new address is confirmed by mail.')
    .option('--confirmed', 'the address is known to be correct: do not ask for confirmation')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user email alice alice@mail.example --confirmed')
    .action(changeEmail)

  withActorOptions(user.command('role'))
    .argument('<username>')
    .addArgument(new Argument('<role>').choices(ROLES))
    .description('Sets or removes the role of a user.')
    .option('--yes', 'accepted for scripts; the command asks for no confirmation')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user role alice admin')
    .action(changeRole)

  userAccessCommands(user)
  userSettingsCommands(user)
}

function withPasswordOptions(command: Command): Command {
  return command
    .addOption(new Option('--password <text>', 'without it, one is made and shown once').conflicts('passwordStdin'))
    .option('--password-stdin', 'read the password from the first line of standard input')
}

async function create(
  username: string,
  options: PasswordOptions & { email?: string; language?: string },
): Promise<void> {
  const password = await passwordOf(options)
  const { email, language } = options
  const account = await withPod(
    (services) => createUserByOperator(services, { username, password: password.text, email, language }),
    { makesPod: true },
  )
  const { guid, address } = account
  const passwordField = password.made ? { password: password.text } : {}
  print(options, { guid, address, username, ...passwordField }, [
    `${address} was created, with guid ${guid}.`,
    ...(password.made ? [`The password is ${password.text} and is not shown again.`] : []),
  ])
}

async function list(options: OutputOptions & { after?: string; limit?: number }): Promise<void> {
  const { limit = Number.POSITIVE_INFINITY } = options
  const accounts = await withPod(async (services) => {
    const accounts: Account[] = []
    for (;;) {
      const after = accounts.at(-1)?.username ?? options.after
      const page = await listUsers(services, { after, limit: Math.min(PAGE, limit - accounts.length) })
      accounts.push(...page)
      if (page.length < PAGE || accounts.length === limit) return accounts
    }
  })
  print(options, accounts.map(present), [
    ...table(
      accounts.map((account) => [account.username, account.guid, account.role, account.closedAt ? 'closed' : '']),
    ),
    accounts.length === 1 ? '1 account' : `${accounts.length} accounts`,
  ])
}

async function show(username: string, options: OutputOptions): Promise<void> {
  const account = await withPod((services) => findUser(services, username))
  if (account === undefined) throw new CommandError(`There is no local account named ${username}.`)
  const fields = present(account)
  print(options, fields, table(Object.entries(fields).map(([name, value]) => [name, value ?? 'no'])))
}

async function changePassword(
  username: string,
  options: PasswordOptions & { keepApplications?: boolean; link?: boolean },
): Promise<void> {
  if (options.link) {
    const url = await withPod((services) => createResetLink(services, COMMAND_ACTOR, username))
    return print(options, { username, url }, [url])
  }
  const { keepApplications: shouldKeepApplications = false } = options
  const password = await passwordOf(options)
  await withPod((services) => resetPasswordByOperator(services, username, password.text, { shouldKeepApplications }))
  print(options, { username, ...(password.made ? { password: password.text } : {}) }, [
    password.made
      ? `The new password of ${username} is ${password.text} and is not shown again.`
      : `${username} has the new password.`,
    shouldKeepApplications
      ? 'All browser sessions have ended; applications keep their access.'
      : 'All sessions and tokens have ended: applications have to be authorized again.',
  ])
}

async function changeEmail(
  username: string,
  address: string | undefined,
  options: OutputOptions & { confirmed?: boolean },
): Promise<void> {
  const { email, confirmed, unconfirmedEmail, mailState } = await withPod(async (services) => {
    const { confirmed: isConfirmed = false } = options
    if (address !== undefined) await setEmail(services, COMMAND_ACTOR, username, { address, confirmed: isConfirmed })
    return getEmail(services, username)
  })
  const fields = { email, confirmed, unconfirmed_email: unconfirmedEmail, mail_state: mailState }
  print(
    options,
    { username, ...fields },
    table(Object.entries(fields).map(([name, value]) => [name, String(value ?? 'none')])),
  )
}

async function changeRole(username: string, role: RoleChoice, options: ActorOptions): Promise<void> {
  const { reason = 'Changed with pod user role.' } = options
  await withPod(async (services) => {
    const account = await findUser(services, username)
    if (account === undefined) throw new CommandError(`There is no local account named ${username}.`)
    if (account.closedAt !== null) throw new CommandError(`The account ${username} is closed.`)
    const actor = await getActor(services, options, 'administration')
    await setRole(services, actor, account.guid, { role, reason, confirm: account.username })
  })
  print(options, { username, role }, [role === 'none' ? `${username} has no role.` : `${username} is ${role} now.`])
}

function present(account: Account) {
  return {
    username: account.username,
    guid: account.guid,
    address: account.address,
    role: account.role,
    created_at: account.createdAt.toISOString(),
    closed_at: account.closedAt?.toISOString() ?? null,
  }
}

async function passwordOf(options: PasswordOptions): Promise<{ readonly text: string; readonly made: boolean }> {
  if (options.password !== undefined) return { text: options.password, made: false }
  if (options.passwordStdin) return { text: await firstLine(), made: false }
  return { text: randomBytes(15).toString('base64url'), made: true }
}

async function firstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin })
  for await (const line of lines) return line
  throw new CommandError('There is no password on stdin.')
}
