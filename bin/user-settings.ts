import { Ajv } from 'ajv'
import { changeSettingsByOperator, findSettingsByOperator } from '../src/domain/accounts/operator/operator-changes.js'
import { presentSettings } from '../src/web/presenters/settings.js'
import { readSettingsChange, SettingsChanges, UserSettings } from '../src/web/schemas/settings.js'
import { CommandError } from './command-error.js'
import { type OutputOptions, print, table } from './output.js'
import { withPod } from './with-pod.js'

/** `pod user settings`: changes are texts like `time_zone=Europe/Berlin`. */
export async function showOrChangeSettings(
  username: string,
  changes: readonly string[],
  options: OutputOptions,
): Promise<void> {
  const body = readChanges(changes)
  const settings = await withPod(async (services) => {
    if (changes.length > 0)
      await changeSettingsByOperator(services, username, readSettingsChange(body), Object.keys(body))
    const isMailAvailable = services.config.mail !== undefined
    return presentSettings(await findSettingsByOperator(services, username), { canShowEmail: true, isMailAvailable })
  })
  const { mail_kinds: kinds, ...others } = settings
  const ofKinds = Object.entries(kinds).map(([kind, delivery]) => [`mail_kinds.${kind}`, delivery] as const)
  const rows = [...Object.entries(others), ...ofKinds]
  print(
    options,
    { username, ...settings },
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
