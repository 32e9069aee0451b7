import { parse as parseYaml } from 'yaml'
import { isUrl } from '../protocol/is-url.js'
import { readToml } from './read-toml.js'
import { TakeOverError } from './take-over-error.js'

/** The settings of the old pod as settings of this one. */
export interface OldSettings {
  /** Lines of a file `.env` by name. */
  readonly variables: Readonly<Record<string, string>>
  /** Settings that this pod does not have, or that have to be set for it anew. */
  readonly notOffered: readonly string[]
}

/** A value of a setting by its path, `environment.url`. */
type ReadSetting = (path: string) => unknown

const MAX_FILE_BYTES = 1024 * 1024

/**
 * Reads the configuration file of a diaspora* pod, in TOML or YAML. As there, a variable such as `ENVIRONMENT_URL` comes before the
 * section `production`, and that before `configuration`.
 */
export function readOldSettings(
  file: { readonly name: string; readonly text: string },
  environment: Readonly<Record<string, string | undefined>>,
): OldSettings {
  const sections = readSections(file)
  const read: ReadSetting = (path) => {
    const variable = environment[path.replaceAll('.', '_').toUpperCase()]
    if (variable !== undefined && variable !== '') return variable
    return valueAt(sections['production'], path) ?? valueAt(sections['configuration'], path)
  }
  const { mail, notOffered } = mailOf(read)
  const variables = { ...addressesOf(read), ...rulesOf(read), ...mail, ...storeOf(read) }
  const definedVariables = Object.entries(variables).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return {
    variables: Object.fromEntries(definedVariables),
    notOffered: [
      ...notOffered,
      ...NOT_OFFERED.filter((path) => isSet(read(path))),
      ...(isCamoOnOwnHost(read) ? ['/camo is a service of its own: let the proxy route it as before'] : []),
    ],
  }
}

/** Lines for the file `.env`. */
export function writeEnvironmentFile({ variables, notOffered }: OldSettings): readonly string[] {
  return [
    ...Object.entries(variables).map(([name, value]) => `${name}=${quoteValue(value)}`),
    ...notOffered.map((path) => `# not taken over: ${path}`),
  ]
}

/** Settings without a counterpart. The Redis of the old pod is not that of this one. */
const NOT_OFFERED = [
  'environment.redis',
  'settings.welcome_message',
  'settings.autofollow_on_join',
  'settings.terms.enable',
  'privacy.camo.root',
  'settings.captcha.enable',
  'settings.paypal_donations.enable',
  'settings.liberapay_username',
  'settings.bitcoin_address',
  'settings.csp.report_uri',
  'map.mapbox.enabled',
  'settings.community_spotlight.enable',
  'settings.source_url',
  'server.database',
]

function isCamoOnOwnHost(read: ReadSetting): boolean {
  const root = textOf(read('privacy.camo.root'))
  const url = textOf(read('environment.url'))
  if (root === undefined || url === undefined || !isUrl(url)) return false
  return isUrl(root) ? new URL(root).host === new URL(url).host : root.startsWith('/')
}

function addressesOf(read: ReadSetting) {
  const url = textOf(read('environment.url'))
  if (url !== undefined && !isUrl(url)) throw new TakeOverError('environment.url is not an address.')
  return {
    POD_URL: url && new URL(url).origin,
    OIDC_ISSUER: url,
    IMAGE_REDIRECT_URL: textOf(read('environment.image_redirect_url')),
  }
}

function rulesOf(read: ReadSetting) {
  const removesUnused = isOn(read('settings.maintenance.remove_old_users.enable'), false)
  const isOpen = isOn(read('settings.enable_registrations'), true)
  const counts = ['user_counts', 'post_counts', 'comment_counts']
  const names = read('settings.username_blacklist')
  return {
    POD_NAME: textOf(read('settings.pod_name')),
    REGISTRATIONS: isOpen ? 'open' : isOn(read('settings.invitations.open'), true) ? 'invite' : 'closed',
    STATISTICS: counts.every((name) => isOn(read(`privacy.statistics.${name}`), true)) ? 'on' : 'off',
    PODMIN_ACCOUNT: textOf(read('admins.account')),
    PODMIN_CONTACT: textOf(read('admins.podmin_email')),
    INACTIVE_ACCOUNT_DAYS: removesUnused
      ? (textOf(read('settings.maintenance.remove_old_users.after_days')) ?? '730')
      : undefined,
    USERNAME_BLACKLIST: Array.isArray(names) ? names.join(',') : textOf(names)?.replace(/\s*,\s*/g, ','),
  }
}

function mailOf(read: ReadSetting) {
  if (!isOn(read('mail.enable'), false)) return { mail: {}, notOffered: [] }
  const method = textOf(read('mail.method')) ?? 'smtp'
  if (method !== 'smtp') return { mail: {}, notOffered: [`mail.method ${method}`] }
  const port = textOf(read('mail.smtp.port')) ?? '587'
  const url = new URL(`${port === '465' ? 'smtps' : 'smtp'}://${textOf(read('mail.smtp.host')) ?? 'localhost'}:${port}`)
  if (textOf(read('mail.smtp.authentication')) !== 'none') {
    url.username = encodeURIComponent(textOf(read('mail.smtp.username')) ?? '')
    url.password = encodeURIComponent(textOf(read('mail.smtp.password')) ?? '')
  }
  return { mail: { SMTP_URL: url.href, MAIL_FROM: textOf(read('mail.sender_address')) }, notOffered: [] }
}

function storeOf(read: ReadSetting) {
  if (!isOn(read('environment.s3.enable'), false)) return {}
  return {
    STORAGE: 's3',
    S3_BUCKET: textOf(read('environment.s3.bucket')),
    S3_REGION: textOf(read('environment.s3.region')),
    S3_ACCESS_KEY_ID: textOf(read('environment.s3.key')),
    S3_SECRET_ACCESS_KEY: textOf(read('environment.s3.secret')),
  }
}

function readSections({ name, text }: { readonly name: string; readonly text: string }): Record<string, unknown> {
  if (text.length > MAX_FILE_BYTES) throw new TakeOverError(`The file ${name} is too long to be a configuration file.`)
  try {
    const read: unknown = name.endsWith('.toml') ? readToml(text) : parseYaml(text, { maxAliasCount: 100 })
    if (isRecord(read)) return read
  } catch (cause) {
    throw new TakeOverError(`The file ${name} is not YAML.`, { cause })
  }
  throw new TakeOverError(`The settings of the file ${name} cannot be read.`)
}

function valueAt(section: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isRecord(value) ? value[name] : undefined), section)
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function textOf(value: unknown): string | undefined {
  const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : ''
  return text === '' ? undefined : text
}

function isOn(value: unknown, isOnByDefault: boolean): boolean {
  if (typeof value === 'boolean') return value
  return typeof value === 'string' ? /^(true|yes|1)$/i.test(value.trim()) : isOnByDefault
}

/** Lists, texts and switches that are on. */
function isSet(value: unknown): boolean {
  if (isRecord(value)) return Object.values(value).some(isSet)
  return typeof value === 'boolean' ? value : textOf(value) !== undefined && textOf(value) !== 'false'
}

/** The value as Node.js reads it from `.env`: with quotes only if it needs them, of a kind that it does not contain. */
function quoteValue(text: string): string {
  if (/^[\w@%+=:,./-]*$/.test(text)) return text
  const quote = ["'", '`', '"'].find((mark) => !text.includes(mark)) ?? "'"
  return `${quote}${text}${quote}`
}
