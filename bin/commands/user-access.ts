import type { Command } from 'commander'
import {
  endSessionsByOperator,
  findFactorsByOperator,
  listSessionsByOperator,
  removeFactorsByOperator,
} from '../../src/domain/accounts/operator/operator-changes.js'
import { type OutputOptions, print, table } from '../output.js'
import { withPod } from '../with-pod.js'

/** Commands about the sessions and second factors of a user, below `pod user`. */
export function userAccessCommands(user: Command): void {
  user
    .command('sessions <username>')
    .description('Lists the browser sessions of a user, or ends all of them.')
    .option('--end-all', 'end the sessions in all browsers')
    .option('--apps', 'with --end-all: also end the access of all applications')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user sessions alice --end-all --apps')
    .action(sessions)

  user
    .command('two-factor <username>')
    .description('Shows the second factors of a user, or removes all of them if they are lost.')
    .option('--off', 'remove all second factors; sessions in browsers end')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user two-factor alice --off')
    .action(twoFactor)
}

async function sessions(
  username: string,
  { endAll, apps: applications = false, ...options }: OutputOptions & { endAll?: boolean; apps?: boolean },
): Promise<void> {
  if (endAll) {
    await withPod((services) => endSessionsByOperator(services, username, { applications }))
    const endedAccess = applications ? 'All sessions and the access of all applications' : 'All sessions'
    return print(options, { username, ended: true, applications }, [`${endedAccess} of ${username} have ended.`])
  }
  const userSessions = await withPod((services) => listSessionsByOperator(services, username))
  const rows = userSessions.map(({ browser, network, beganAt, lastUsedAt }) => ({
    browser,
    network,
    began_at: beganAt.toISOString(),
    last_used_at: lastUsedAt.toISOString(),
  }))
  print(options, rows, [
    ...table(rows.map((row) => Object.values(row))),
    rows.length === 1 ? '1 session' : `${rows.length} sessions`,
  ])
}

async function twoFactor(username: string, { off, ...options }: OutputOptions & { off?: boolean }): Promise<void> {
  if (off) {
    await withPod((services) => removeFactorsByOperator(services, username))
    return print(options, { username, removed: true }, [
      `${username} no longer has a second factor. All sessions in browsers have ended.`,
    ])
  }
  const { totp, passkeys, recoveryCodesLeft } = await withPod((services) => findFactorsByOperator(services, username))
  print(options, { username, totp, passkeys, recovery_codes_left: recoveryCodesLeft }, [
    `authenticator app: ${totp ? 'on' : 'off'}; passkeys: ${passkeys}; unused recovery codes: ${recoveryCodesLeft}`,
  ])
}
