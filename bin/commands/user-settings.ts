import { Ajv } from 'ajv'
import type { Command } from 'commander'
import {
  changeSettingsByOperator,
  findSettingsByOperator,
} from '../../src/domain/accounts/operator/operator-changes.js'
import { cancelClosingByOperator, closeByOperator, closeNowByOperator } from '../../src/domain/accounts/own-closing.js'
import { presentSettings } from '../../src/web/presenters/settings.js'
import { readSettingsChange, SettingsChanges, UserSettings } from '../../src/web/schemas/settings.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, table } from '../output.js'
import { withPod } from '../with-pod.js'

/** Commands about the settings of a user and the closing of the account, below `pod user`. */
export function userSettingsCommands(user: Command): void {
  user
    .command('settings <username> [changes...]')
    .description('Shows the settings of a user, or changes them. The names are those of the API.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod user settings alice time_zone=Europe/Berlin mail_kinds.liked=never')
    .action(settings)

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

async function settings(username: string, changes: readonly string[], options: OutputOptions): Promise<void> {
  const body = readChanges(changes)
  const shown = await withPod(async (pod) => {
    if (changes.length > 0) await changeSettingsByOperator(pod, username, readSettingsChange(body), Object.keys(body))
    const mailAvailable = pod.config.mail !== undefined
    return presentSettings(await findSettingsByOperator(pod, username), { showsEmail: true, mailAvailable })
  })
  const { mail_kinds: kinds, ...others } = shown
  const ofKinds = Object.entries(kinds).map(([kind, delivery]) => [`mail_kinds.${kind}`, delivery] as const)
  const rows = [...Object.entries(others), ...ofKinds]
  print(
    options,
    { username, ...shown },
    table(rows.map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)])),
  )
}

const isChange = new Ajv({ strict: false }).compile(SettingsChanges)

/** Reads `name=value` texts into a body of the API. */
function readChanges(changes: readonly string[]): Record<string, unknown> {
  const body: Record<string, unknown> = {}
  const kinds: Record<string, string> = {}
  for (const change of changes) {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(change) ?? []
    const kind = /^mail_kinds\.(.+)$/.exec(name)?.[1]
    if (kind !== undefined) kinds[kind] = value
    else if (name === 'default_post_aspect_ids') body[name] = value === '' ? [] : value.split(',')
    else if (Object.hasOwn(UserSettings.properties, name) && name !== 'mail_kinds') {
      body[name] = value === 'null' || (value === '' && name === 'follow_back_aspect_id') ? null : value
    } else throw new CommandError(`"${change}" is not a setting with a value, such as time_zone=Europe/Berlin.`)
  }
  if (Object.keys(kinds).length > 0) body['mail_kinds'] = kinds
  if (isChange(body)) return body
  const [error] = isChange.errors ?? []
  throw new CommandError(`"${error?.instancePath.slice(1).replaceAll('/', '.')}" ${error?.message}.`)
}

interface CloseOptions extends OutputOptions {
  readonly now?: boolean
  readonly cancel?: boolean
  readonly yes?: boolean
}

async function close(username: string, { now = false, cancel = false, yes = false, ...options }: CloseOptions) {
  if (now && cancel) throw new CommandError('--now and --cancel exclude each other.')
  if (cancel) {
    await withPod((pod) => cancelClosingByOperator(pod, username))
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
    await withPod((pod) => closeNowByOperator(pod, username))
    return print(options, { username, closed: true }, [`${username} is closed; sign-in is no longer possible.`])
  }
  const closeAt = (await withPod((pod) => closeByOperator(pod, username))).toISOString()
  print(options, { username, close_at: closeAt }, [
    `${username} is closed on ${closeAt}. Until then a sign-in, or --cancel, keeps the account.`,
  ])
}
