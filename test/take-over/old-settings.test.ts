import { expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { readOldSettings, writeEnvironmentFile } from '../../src/take-over/old-settings.js'

const TOML = `
[configuration.environment]
url = "https://www.old.example/"
redis = "redis://localhost"
image_redirect_url = "https://pictures.example/"
[configuration.environment.s3]
enable = true
bucket = "bucket"
region = "eu-west-1"
key = "key"
secret = "it's # a secret"
[configuration.settings]
pod_name = "The # pod" # its name
enable_registrations = false
welcome_message = "Hello"
username_blacklist = [
  "admin", # the first
  'root',
]
[configuration.settings.invitations]
open = true
[configuration.privacy.statistics]
user_counts = true
post_counts = false
[configuration.admins]
account = "alice"
podmin_email = "alice@old.example"
[configuration.settings.maintenance.remove_old_users]
enable = true
after_days = 365
[configuration.mail]
enable = true
sender_address = "pod@old.example"
[configuration.mail.smtp]
host = "mail.old.example"
username = "pod@old.example"
password = "p/w"
[production.settings]
pod_name = "In production"
`

const YAML = `
configuration:
  environment:
    url: "https://old.example"
  settings:
    enable_registrations: false
    invitations:
      open: false
  mail:
    enable: true
    method: sendmail
`

it('reads the settings of an old pod as those of this one, and lists the others', () => {
  const settings = readOldSettings({ name: 'diaspora.toml', text: TOML }, {})
  expect(settings).toEqual({
    variables: {
      POD_URL: 'https://www.old.example',
      OIDC_ISSUER: 'https://www.old.example/',
      IMAGE_REDIRECT_URL: 'https://pictures.example/',
      POD_NAME: 'In production',
      REGISTRATIONS: 'invite',
      STATISTICS: 'off',
      PODMIN_ACCOUNT: 'alice',
      USERNAME_BLACKLIST: 'admin,root',
      PODMIN_CONTACT: 'alice@old.example',
      INACTIVE_ACCOUNT_DAYS: '365',
      SMTP_URL: 'smtp://pod%40old.example:p%2Fw@mail.old.example:587',
      MAIL_FROM: 'pod@old.example',
      STORAGE: 's3',
      S3_BUCKET: 'bucket',
      S3_REGION: 'eu-west-1',
      S3_ACCESS_KEY_ID: 'key',
      S3_SECRET_ACCESS_KEY: "it's # a secret",
    },
    notOffered: ['environment.redis', 'settings.welcome_message'],
  })
  const config = readConfig(settings.variables)
  expect([config.oidcIssuer, config.imageRedirectUrl]).toEqual(['https://www.old.example/', 'https://pictures.example'])
  const lines = writeEnvironmentFile(settings)
  expect(lines).toContain("POD_NAME='In production'")
  expect(lines).toContain("S3_SECRET_ACCESS_KEY=`it's # a secret`")
  expect(lines).toContain('# not taken over: settings.welcome_message')
})

it('reads YAML, and variables before the file', () => {
  const file = { name: 'diaspora.yml', text: YAML }
  expect(readOldSettings(file, { ENVIRONMENT_URL: 'https://new.example/', SETTINGS_POD_NAME: 'Pod' })).toEqual({
    variables: {
      POD_URL: 'https://new.example',
      OIDC_ISSUER: 'https://new.example/',
      POD_NAME: 'Pod',
      REGISTRATIONS: 'closed',
      STATISTICS: 'on',
    },
    notOffered: ['mail.method sendmail'],
  })
})

it('names a camo on the host of the pod, which the proxy has to route', () => {
  const camoAt = (root: string) =>
    readOldSettings(
      {
        name: 'x.yml',
        text: `configuration: {environment: {url: 'https://old.example/'}, privacy: {camo: {root: '${root}'}}}`,
      },
      {},
    ).notOffered
  const service = '/camo is a service of its own: let the proxy route it as before'
  expect(camoAt('https://old.example/camo/')).toEqual(['privacy.camo.root', service])
  expect(camoAt('/camo/')).toEqual(['privacy.camo.root', service])
  expect(camoAt('https://camo.example/')).toEqual(['privacy.camo.root'])
})

it('refuses a file that is not a configuration', () => {
  expect(() => readOldSettings({ name: 'x.toml', text: 'no toml' }, {})).toThrow(
    'The settings of the file x.toml cannot be read',
  )
  expect(() => readOldSettings({ name: 'x.yml', text: 'text' }, {})).toThrow(
    'The settings of the file x.yml cannot be read',
  )
  const wrong = 'configuration: {environment: {url: nowhere}}'
  expect(() => readOldSettings({ name: 'x.yml', text: wrong }, {})).toThrow('environment.url is not an address')
})
