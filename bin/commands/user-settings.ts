import type { Command } from 'commander'
import {
  cancelClosingByOperator,
  closeByOperator,
  closeNowByOperator,
} from '../../src/domain/accounts/closing/own-closing.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print } from '../output.js'
import { withPod } from '../with-pod.js'

/** Commands about the settings of a user and the closing of the account, below `pod user`. */
export function userSettingsCommands(user: Command): void {
  user
    .command('settings <username> [changes...]')
    .description('Shows or changes the settings of a user, with the names of the API.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user settings alice time_zone=Europe/Berlin mail_kinds.liked=never')
    .action(showOrChange)

  user
    .command('close <username>')
    .description('Closes an account after the grace period (CLOSE_GRACE_DAYS); until then its owner can keep it.')
    .option('--now', 'at once and permanently; the name stays reserved')
    .option('--cancel', 'keep an account that is being closed')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user close alice --yes')
    .action(close)
}

/** The schemas of the API take longer to load than all other commands of users. */
async function showOrChange(username: string, changes: readonly string[], options: OutputOptions): Promise<void> {
  const { showOrChangeSettings } = await import('../user-settings.js')
  await showOrChangeSettings(username, changes, options)
}

interface CloseOptions extends OutputOptions {
  readonly now?: boolean
  readonly cancel?: boolean
  readonly yes?: boolean
}

async function close(username: string, { now = false, cancel = false, yes = false, ...options }: CloseOptions) {
  if (now && cancel) throw new CommandError('--now and --cancel exclude each other.')
  if (cancel) {
    await withPod((services) => cancelClosingByOperator(services, username))
    return print(options, { username, close_at: null }, [`${username} is kept.`])
  }
  if (!yes) {
    throw new CommandError(
      now
        ? `Closing ${username} cannot be undone: add --yes to confirm.`
        : `Add --yes to confirm the closing of ${username}.`,
    )
  }
  if (now) {
    await withPod((services) => closeNowByOperator(services, username))
    return print(options, { username, closed: true }, [`${username} is closed; sign-in is no longer possible.`])
  }
  const closeAt = (await withPod((services) => closeByOperator(services, username))).toISOString()
  print(options, { username, close_at: closeAt }, [
    `${username} is closed on ${closeAt}. Until then a sign-in, or --cancel, keeps the account.`,
  ])
}
