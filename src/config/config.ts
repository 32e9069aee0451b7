import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { Ajv, type ErrorObject } from 'ajv'
import { StartError } from '../errors/start-error.js'
import type { QueueName } from '../jobs/queues/queue-names.js'
import { type AllowPrivate, readAllowPrivate } from '../networks/private-hosts.js'
import { readTrustProxy } from '../networks/trusted-proxies.js'
import type { ClientApiDialect } from '../persistence/models/client.js'
import type { PictureStorage } from '../persistence/photos/picture-storage.js'
import type { S3Settings } from '../persistence/s3/s3-client.js'
import {
  type AdminListen,
  checkAddressScheme,
  type Listen,
  localUrl,
  readAdminListen,
  readPodUrl,
  readRedis,
} from './addresses.js'
import {
  type BackupKeep,
  type BackupStore,
  checkBackupPictures,
  readBackupKeep,
  readBackupS3,
} from './backup-settings.js'
import { checkIsolation, ISOLATED_QUEUES } from './isolation.js'
import { importLimits, requestLimits, retentionOf, spamThresholds } from './limit-settings.js'
import { type MailSettings, readMailSettings } from './mail-settings.js'
import { MEANING_KEYWORDS } from './schemas.js'
import { withSettingFiles } from './setting-files.js'
import { checkSignUpConfirmation, signUpSettings } from './sign-up-settings.js'
import { readStaffAccess } from './staff-settings.js'
import { isAllInS3, readS3, readUploadsBaseUrl } from './storage-settings.js'
import { readTracingSettings, type TracingSettings } from './tracing-settings.js'
import { type Environment, VARIABLES } from './variables.js'
import { readConcurrency, readQueues } from './worker-settings.js'

export const CLIENT_API_DIALECTS = ['standard', 'diaspora'] as const satisfies readonly ClientApiDialect[]

/** Who may import archives of accounts. */
type ImportMode = 'on' | 'operator' | 'off'

/**
 * All settings of the pod. The entry points pass `process.env` to `readConfig`; no other module reads a setting from the environment.
 */
export interface Config {
  /** The public URL; part of every identity, so it cannot change later. No trailing slash. */
  readonly url: string
  /** The part after the @ in every address of this pod. */
  readonly host: string
  readonly listen: Listen
  /** Not set: the embedded PostgreSQL. */
  readonly databaseUrl: string | undefined
  /** A streaming replica of the same database, for lists. Not set: everything is read where it is written. */
  readonly databaseReadUrl: string | undefined
  /** Connections per process; not set: what this kind of process needs. */
  readonly databasePool: number | undefined
  /** Not set: the queue is stored in PostgreSQL. */
  readonly redisUrl: string | undefined
  /** Replicas of Redis that must have a message before it is accepted. */
  readonly redisReplicas: number
  /** Queues this worker process serves. */
  readonly workerQueues: readonly QueueName[]
  /** Maximum concurrent jobs, by queue; other queues keep the default. */
  readonly workerConcurrency: Readonly<Partial<Record<QueueName, number>>>
  readonly cryptoThreads: number
  /** Bytes of accepted messages that are not stored yet; above the limit, senders get 503. */
  readonly inboundBytes: number
  readonly dataDir: string
  /** Pictures and uploads in progress; shared by web and worker processes. */
  readonly uploadsDir: string
  readonly storage: PictureStorage['kind']
  /** The store from which pictures are being moved. */
  readonly uploadsFallback: PictureStorage['kind'] | undefined
  readonly s3: S3Settings | undefined
  /** Whether this pod serves pictures of the S3 store itself, or redirects to it. */
  readonly s3Delivery: 'proxy' | 'redirect'
  /** Where clients and pages load pictures from; ends in a slash. Not set: from this pod. */
  readonly uploadsBaseUrl: string | undefined
  /** The largest picture that may be uploaded. */
  readonly photoBytes: number
  /** Content with one text, link, photo or set of mentions in an hour is a cluster if it is by this number of authors. */
  readonly spamClusterItems: number
  readonly spamClusterAuthors: number
  /** It is also a cluster if it is by one author under the posts of this number of people. */
  readonly spamAuthorItems: number
  readonly spamAuthorThreads: number
  /** New conversations of one person in an hour with people who do not follow them, without a case. */
  readonly spamConversations: number
  /** Whether new content of an open cluster is hidden. */
  readonly spamAutoHide: boolean
  /** Bytes that one other pod may send in a day; 0: unlimited. */
  readonly podBytesPerDay: number
  /** Bytes of the stored photos of one user; 0: unlimited. */
  readonly photoQuota: number
  /** `operator`: by commands only. */
  readonly imports: ImportMode
  /** Maximum bytes of an archive that is imported, as it is compressed. */
  readonly importBytes: number
  /** Maximum bytes of the zip of its photos. */
  readonly importPhotoBytes: number
  /** Maximum bytes of the uploaded files of all accounts together. */
  readonly importTotalBytes: number
  /** Not set: made once, kept in the data folder. */
  readonly secretKey: string | undefined
  readonly trustProxy: boolean | string
  /** Milliseconds for which a stopping web process still serves while `/health/ready` answers 503. */
  readonly shutdownDelayMs: number
  readonly logLevel: string
  readonly logFormat: 'json' | 'pretty' | 'auto'
  /** Metrics and health. `default`: the usual ports, or the next free ones; `off`: not at all. */
  readonly adminListen: AdminListen
  /** Whether the web console is served under `/admin`. */
  readonly console: boolean
  /** The networks that may use the console; empty: all. */
  readonly consoleNetworks: string
  /** Origins whose web apps may use the admin API. */
  readonly adminApiOrigins: readonly string[]
  /** Whether moderators and admins need a second factor. */
  readonly staffSecondFactor: boolean
  readonly podName: string
  /** The language of pages for visitors whose browser requests no available language. */
  readonly defaultLanguage: string
  /** A folder with catalogues that add languages or change texts. */
  readonly localesDir: string | undefined
  /** The account that signs participations; not set: the account of the pod. */
  readonly podminAccount: string | undefined
  /** Where people reach the operator: an e-mail address, or the address of a page. */
  readonly podminContact: string | undefined
  /** A file with the terms that people accept when they sign up. */
  readonly termsFile: string | undefined
  /** The source code of the running version. */
  readonly sourceUrl: string | undefined
  /** Who may sign up; published in NodeInfo. */
  readonly registrations: 'open' | 'invite' | 'closed'
  /** Sign-ups in 24 hours after which open sign-up stops; 0: unlimited. */
  readonly signUpsPerDay: number
  /** Days for which the copy of a reported text is kept after the end of its case. */
  readonly reportEvidenceDays: number
  /** Days between the decision to close an account and its end. */
  readonly closeGraceDays: number
  /** Days without use after which an account is closed; 0: never. */
  readonly inactiveAccountDays: number
  /** Invitations of a user that may be open; 0: users without a role make none. */
  readonly invitationsPerUser: number
  /** Days without an active moderator or admin after which open sign-ups need a decision; 0: never. */
  readonly unattendedDays: number
  /** The mail server; undefined: the pod sends no mail. */
  readonly mail: MailSettings | undefined
  /** Whether a sign-up needs a confirmed mailbox. */
  readonly signUpConfirmation: boolean
  /** Whether a moderator decides about sign-ups. */
  readonly signUpApproval: boolean
  /** Sign-ups that may wait for a moderator; 0: unlimited. */
  readonly signUpBacklog: number
  /** Mail domains, with their subdomains, that no sign-up may use. */
  readonly emailDomainBlocklist: readonly string[]
  /** Whether NodeInfo publishes the numbers of users, posts and comments. */
  readonly statistics: boolean
  /**
   * Per network address and web process: failed sign-ins and sign-ups in five minutes, client registrations in an hour, token
   * requests in a minute, authorization requests in five minutes, page requests in a minute. 0: unlimited.
   */
  readonly addressLimits: {
    readonly signIns: number
    readonly clients: number
    readonly tokens: number
    readonly authorizations: number
    readonly pages: number
  }
  /** Writes of one user per minute and web process; 0: unlimited. */
  readonly writeLimit: number
  /** The shape of responses where the documented API and diaspora* differ. */
  readonly clientApiDialect: ClientApiDialect
  readonly usernameBlacklist: readonly string[]
  /** The issuer of ID tokens, as applications know it. Undefined: the address of the pod. */
  readonly oidcIssuer: string | undefined
  /** Address of the pictures that this pod does not have, under the same path. No trailing slash. */
  readonly imageRedirectUrl: string | undefined
  /** The place of backups; not set: a command has to name it. */
  readonly backupTo: string | undefined
  /** Address and keys of the S3 store for backups. */
  readonly backupS3: BackupStore | undefined
  /** Recipients in the age format for whom backups are encrypted. */
  readonly backupRecipients: string
  /** Time of the daily backup in UTC, as HH:MM; undefined: none is made. */
  readonly backupAt: string | undefined
  /** Whether backups contain the pictures, or only name those of the S3 store. */
  readonly backupPictures: 'include' | 'reference'
  /** How many days, weeks and months keep their last backup. */
  readonly backupKeep: BackupKeep
  /** Days for which old rows are kept; 0: forever. */
  readonly retention: {
    /** Remote posts that no local user has touched. */
    readonly posts: number
    /** Whether these posts may have comments. */
    readonly withComments: boolean
    /** Read notifications. */
    readonly notifications: number
    /** Outbox rows and deliveries that were given up. */
    readonly dead: number
    readonly tombstones: number
  }
  /** Undefined: no spans are sent to a collector. */
  readonly tracing: TracingSettings | undefined
  /** Other pods with metrics of their own. */
  readonly metricsPeers: number
  /** A JSON document with the newest version of the program; undefined: it is not read. */
  readonly updateCheckUrl: string | undefined
  /** No request to other pods leaves this copy of the pod, and its workers do only local work. */
  readonly isolated: boolean
  /** Private addresses that the pod may connect to, for tests and development. */
  readonly allowPrivateAddresses: AllowPrivate
}

/** Invalid settings; the message has a describeFault for each. */
export class SettingsError extends StartError {
  override name = 'SettingsError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The pod cannot start with these settings:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

export function isNameOfSetting(name: string): boolean {
  return Object.hasOwn(VARIABLES, name)
}

/** The names of the settings that an environment has. */
export function namesOfSettings(environment: NodeJS.ProcessEnv): readonly string[] {
  return Object.keys(VARIABLES).filter((name) => Boolean(environment[name]))
}

// Types are coerced: environment variables are texts.
const validate = new Ajv({
  allErrors: true,
  coerceTypes: true,
  useDefaults: true,
  keywords: [...MEANING_KEYWORDS],
}).compile<Environment>({
  type: 'object',
  properties: VARIABLES,
})

/** Reads the settings. Throws one SettingsError that names every invalid variable. */
export function readConfig(processEnvironment: NodeJS.ProcessEnv): Config {
  const fileFaults: string[] = []
  const environment = withSettingFiles(processEnvironment, fileFaults)
  const variables: Record<string, unknown> = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== ''),
  )
  const invalidValues = validate(variables) ? [] : [...new Set((validate.errors ?? []).map(describeFault))]
  const settings = variables as unknown as Environment // with invalid values the function throws before it returns

  const faults = [...fileFaults, ...invalidValues]
  const url = readPodUrl(settings.POD_URL ?? localUrl(settings.PORT), faults)
  checkAddressScheme('DATABASE_URL', settings.DATABASE_URL, ['postgres:', 'postgresql:'], faults)
  checkAddressScheme('DATABASE_READ_URL', settings.DATABASE_READ_URL, ['postgres:', 'postgresql:'], faults)
  const redis = readRedis(settings.REDIS_URL, faults)
  const workerQueues = readQueues(settings.WORKER_QUEUES, faults)
  const workerConcurrency = readConcurrency(settings.WORKER_CONCURRENCY, faults)
  const adminListen = readAdminListen(environment['ADMIN_LISTEN'], faults)
  const allowPrivateAddresses = readAllowPrivate(settings.ALLOW_PRIVATE_ADDRESSES, faults)
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] as const) {
    checkAddressScheme(name, settings[name], ['http:', 'https:'], faults)
  }
  checkAddressScheme('IMAGE_REDIRECT_URL', settings.IMAGE_REDIRECT_URL, ['http:', 'https:'], faults)
  checkAddressScheme('SOURCE_URL', settings.SOURCE_URL, ['http:', 'https:'], faults)
  checkAddressScheme('UPDATE_CHECK_URL', settings.UPDATE_CHECK_URL, ['http:', 'https:'], faults)
  const s3 = readS3(settings, faults)
  const uploadsBaseUrl = readUploadsBaseUrl(settings.UPLOADS_BASE_URL, faults)
  const backupS3 = readBackupS3(settings, faults)
  const trustProxy = readTrustProxy(settings.TRUST_PROXY, faults)
  const staffAccess = readStaffAccess(settings, faults)
  const mail = readMailSettings(settings, faults)
  checkSignUpConfirmation(settings, faults)
  checkBackupPictures(settings, faults)
  checkIsolation(settings, adminListen, faults)
  if (faults.length > 0 || url === undefined) throw new SettingsError(faults)

  return {
    url: url.origin,
    host: url.host.replace(/^www\./, ''),
    listen: settings.HOST.includes('/') ? { path: settings.HOST } : { host: settings.HOST, port: settings.PORT },
    databaseUrl: settings.DATABASE_URL,
    databaseReadUrl: settings.DATABASE_READ_URL,
    databasePool: settings.DATABASE_POOL,
    redisUrl: settings.REDIS_URL,
    // A fail-over by Sentinel without an acknowledged replica would lose accepted messages.
    redisReplicas: settings.REDIS_REPLICAS ?? (redis?.kind === 'sentinel' ? 1 : 0),
    workerQueues:
      settings.ISOLATED === 'true' ? workerQueues.filter((queue) => ISOLATED_QUEUES.has(queue)) : workerQueues,
    workerConcurrency,
    cryptoThreads: settings.CRYPTO_THREADS ?? availableParallelism(),
    inboundBytes: settings.INBOUND_BYTES,
    dataDir: resolve(settings.DATA_DIR),
    uploadsDir: resolve(settings.UPLOADS_DIR ?? join(settings.DATA_DIR, 'uploads')),
    storage: settings.STORAGE,
    uploadsFallback: settings.UPLOADS_FALLBACK,
    s3,
    s3Delivery: settings.S3_DELIVERY,
    uploadsBaseUrl,
    photoBytes: settings.PHOTO_BYTES,
    photoQuota: settings.PHOTO_QUOTA,
    ...importLimits(settings),
    podBytesPerDay: settings.POD_BYTES_PER_DAY,
    ...spamThresholds(settings),
    secretKey: settings.SECRET_KEY,
    trustProxy,
    shutdownDelayMs: settings.SHUTDOWN_DELAY * 1_000,
    logLevel: settings.LOG_LEVEL,
    logFormat: settings.LOG_FORMAT,
    adminListen,
    ...staffAccess,
    podName: settings.POD_NAME || url.host,
    defaultLanguage: settings.DEFAULT_LANGUAGE,
    localesDir: settings.LOCALES_DIR === undefined ? undefined : resolve(settings.LOCALES_DIR),
    podminAccount: settings.PODMIN_ACCOUNT?.toLowerCase(),
    podminContact: settings.PODMIN_CONTACT,
    sourceUrl: settings.SOURCE_URL,
    termsFile: settings.TERMS_FILE === undefined ? undefined : resolve(settings.TERMS_FILE),
    ...signUpSettings(settings, url, mail),
    closeGraceDays: settings.CLOSE_GRACE_DAYS,
    inactiveAccountDays: settings.INACTIVE_ACCOUNT_DAYS,
    unattendedDays: settings.UNATTENDED_DAYS,
    reportEvidenceDays: settings.REPORT_EVIDENCE_DAYS,
    mail,
    statistics: settings.STATISTICS === 'on',
    ...requestLimits(settings),
    clientApiDialect: settings.CLIENT_API_DIALECT,
    retention: retentionOf(settings),
    tracing: readTracingSettings(settings),
    metricsPeers: settings.METRICS_PEERS,
    updateCheckUrl: settings.UPDATE_CHECK_URL,
    isolated: settings.ISOLATED === 'true',
    allowPrivateAddresses,
    backupTo: settings.BACKUP_TO,
    backupS3,
    backupRecipients: settings.BACKUP_RECIPIENTS,
    backupAt: settings.BACKUP_AT === 'off' ? undefined : settings.BACKUP_AT,
    backupPictures: settings.BACKUP_PICTURES ?? (isAllInS3(settings) ? 'reference' : 'include'),
    backupKeep: readBackupKeep(settings.BACKUP_KEEP),
    oidcIssuer: settings.OIDC_ISSUER,
    imageRedirectUrl: settings.IMAGE_REDIRECT_URL?.replace(/\/+$/, ''),
  }
}

function describeFault(error: ErrorObject): string {
  const name = error.instancePath.slice(1)
  const setting = Object.entries(VARIABLES).find(([key]) => key === name)?.[1] ?? {}
  return `${name} must be ${'description' in setting ? setting.description : error.message}.`
}
