import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { Ajv, type ErrorObject } from 'ajv'
import { StartError } from '../errors/start-error.js'
import { isQueueName, QUEUES, type QueueName } from '../jobs/queues/queue-names.js'
import { type RedisAddress, readRedisAddress } from '../jobs/queues/redis-address.js'
import { type AllowPrivate, readAllowPrivate } from '../networks/private-hosts.js'
import { readNetworkList, readTrustProxy } from '../networks/trusted-proxies.js'
import type { ClientApiDialect } from '../persistence/models/client.js'
import type { PictureStorage } from '../persistence/photos/picture-storage.js'
import type { S3Settings } from '../persistence/s3/s3-client.js'
import { isUrl } from '../protocol/is-url.js'
import { type MailSettings, type MailVariables, readMailSettings } from './mail-settings.js'
import { withSettingFiles } from './setting-files.js'
import {
  readTracingSettings,
  TRACING_VARIABLES,
  type TracingSettings,
  type TracingVariables,
} from './tracing-settings.js'

/** Where a server listens: an address and a port, or a socket path. */
export type Listen = { readonly host: string; readonly port: number } | { readonly path: string }

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
  /** Jobs in hand at a time, by queue; what is not named here keeps its default. */
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
  /** Content with one text, link, photo or set of mentions in an hour, by so many authors, is a cluster … */
  readonly spamClusterItems: number
  readonly spamClusterAuthors: number
  /** … also by one author under the posts of so many people. */
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
  /** The same for the zip of its photos. */
  readonly importPhotoBytes: number
  /** The same for the uploaded files of all accounts together. */
  readonly importTotalBytes: number
  /** Not set: made once, kept in the data folder. */
  readonly secretKey: string | undefined
  readonly trustProxy: boolean | string
  /** Milliseconds for which a stopping web process still serves while `/health/ready` answers 503. */
  readonly shutdownDelayMs: number
  readonly logLevel: string
  readonly logFormat: 'json' | 'pretty' | 'auto'
  /** Metrics and health. `default`: the usual ports, or the next free ones; `off`: not at all. */
  readonly adminListen: Listen | 'default' | 'off'
  /** Whether the web console is served under `/admin`. */
  readonly console: boolean
  /** The networks that may use the console; empty: all. */
  readonly consoleNetworks: string
  /** Origins whose web apps may use the admin API. */
  readonly adminApiOrigins: readonly string[]
  /** Whether moderators and admins need a second factor. */
  readonly staffSecondFactor: boolean
  readonly podName: string
  /** The language of pages for visitors who ask for none that the pod has. */
  readonly defaultLanguage: string
  /** A folder with catalogues that add languages or change texts. */
  readonly localesDir: string | undefined
  /** The account that signs participations; not set: the account of the pod. */
  readonly podminAccount: string | undefined
  /** Where people reach the operator: an e-mail address, or the address of a page. */
  readonly podminContact: string | undefined
  /** A file with the terms that people accept when they sign up. */
  readonly termsFile: string | undefined
  /** Who may sign up; published in NodeInfo. */
  readonly registrations: 'open' | 'invite' | 'closed'
  /** Accounts in a day with which open sign-up stops; 0: unlimited. */
  readonly signUpsPerDay: number
  /** Days for which the copy of a reported text is kept after the end of its case. */
  readonly reportEvidenceDays: number
  /** Days between the decision to close an account and its end. */
  readonly closeGraceDays: number
  /** Days without use after which an account is closed; 0: never. */
  readonly inactiveAccountDays: number
  /** Invitations of a member that may be open; 0: members make none. */
  readonly invitationsPerUser: number
  /** Days without an active moderator after which open sign-ups need a decision; 0: never. */
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
  /** Where pictures are that this pod does not have, under the same path. No trailing slash. */
  readonly imageRedirectUrl: string | undefined
  /** The place of backups; not set: a command has to name it. */
  readonly backupTo: string | undefined
  /** Address and keys of the S3 store for backups. */
  readonly backupS3: Omit<S3Settings, 'bucket' | 'prefix'> | undefined
  /** Recipients in the age format for whom backups are encrypted. */
  readonly backupRecipients: string
  /** Time of the daily backup in UTC, as HH:MM; undefined: none is made. */
  readonly backupAt: string | undefined
  /** Whether backups contain the pictures, or only name those of the S3 store. */
  readonly backupPictures: 'include' | 'reference'
  /** How many days, weeks and months keep their last backup. */
  readonly backupKeep: { readonly daily: number; readonly weekly: number; readonly monthly: number }
  /** Days for which old rows are kept; 0: forever. */
  readonly retention: {
    /** Remote posts that no person of this pod has touched. */
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

/** Invalid settings; the message has a sentence for each. */
export class SettingsError extends StartError {
  override name = 'SettingsError'
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    super(`The pod cannot start with these settings:\n${faults.map((fault) => `  ${fault}`).join('\n')}`)
    this.faults = faults
  }
}

interface Environment extends MailVariables, TracingVariables {
  readonly POD_URL?: string
  readonly PORT: number
  readonly HOST: string
  readonly DATABASE_URL?: string
  readonly DATABASE_READ_URL?: string
  readonly DATABASE_POOL?: number
  readonly REDIS_URL?: string
  readonly REDIS_REPLICAS?: number
  readonly WORKER_QUEUES: string
  readonly WORKER_CONCURRENCY: string
  readonly CRYPTO_THREADS?: number
  readonly INBOUND_BYTES: number
  readonly DATA_DIR: string
  readonly UPLOADS_DIR?: string
  readonly STORAGE: PictureStorage['kind']
  readonly UPLOADS_FALLBACK?: PictureStorage['kind']
  readonly S3_ENDPOINT?: string
  readonly S3_REGION: string
  readonly S3_BUCKET?: string
  readonly S3_PREFIX: string
  readonly S3_ACCESS_KEY_ID?: string
  readonly S3_SECRET_ACCESS_KEY?: string
  readonly S3_PATH_STYLE?: 'true' | 'false'
  readonly S3_DELIVERY: 'proxy' | 'redirect'
  readonly UPLOADS_BASE_URL?: string
  readonly PHOTO_BYTES: number
  readonly PHOTO_QUOTA: number
  readonly IMPORTS: ImportMode
  readonly IMPORT_BYTES: number
  readonly IMPORT_PHOTO_BYTES: number
  readonly IMPORT_TOTAL_BYTES: number
  readonly POD_BYTES_PER_DAY: number
  readonly SPAM_CLUSTER_ITEMS: number
  readonly SPAM_CLUSTER_AUTHORS: number
  readonly SPAM_AUTHOR_ITEMS: number
  readonly SPAM_AUTHOR_THREADS: number
  readonly SPAM_CONVERSATIONS: number
  readonly SPAM_AUTO_HIDE: 'on' | 'off'
  readonly SECRET_KEY?: string
  readonly TRUST_PROXY: string
  readonly SHUTDOWN_DELAY: number
  readonly LOG_LEVEL: string
  readonly LOG_FORMAT: 'json' | 'pretty' | 'auto'
  readonly ADMIN_LISTEN?: string
  readonly ADMIN_CONSOLE: 'on' | 'off'
  readonly ADMIN_CONSOLE_NETWORKS: string
  readonly ADMIN_API_ORIGINS: string
  readonly STAFF_SECOND_FACTOR: 'on' | 'off'
  readonly POD_NAME: string
  readonly DEFAULT_LANGUAGE: string
  readonly LOCALES_DIR?: string
  readonly PODMIN_ACCOUNT?: string
  readonly PODMIN_CONTACT?: string
  readonly TERMS_FILE?: string
  readonly REGISTRATIONS?: 'open' | 'invite' | 'closed'
  readonly SIGN_UPS_PER_DAY: number
  readonly CLOSE_GRACE_DAYS: number
  readonly INACTIVE_ACCOUNT_DAYS: number
  readonly REPORT_EVIDENCE_DAYS: number
  readonly INVITATIONS_PER_USER: number
  readonly UNATTENDED_DAYS: number
  readonly SIGN_UP_CONFIRMATION?: 'on' | 'off'
  readonly SIGN_UP_APPROVAL: 'on' | 'off'
  readonly SIGN_UP_BACKLOG: number
  readonly EMAIL_DOMAIN_BLOCKLIST: string
  readonly STATISTICS: 'on' | 'off'
  readonly SIGN_IN_LIMIT: number
  readonly CLIENT_LIMIT: number
  readonly TOKEN_LIMIT: number
  readonly AUTHORIZATION_LIMIT: number
  readonly PAGE_LIMIT: number
  readonly WRITE_LIMIT: number
  readonly CLIENT_API_DIALECT: ClientApiDialect
  readonly USERNAME_BLACKLIST: string
  readonly OIDC_ISSUER?: string
  readonly IMAGE_REDIRECT_URL?: string
  readonly RETENTION_POSTS_DAYS: number
  readonly RETENTION_WITH_COMMENTS: 'on' | 'off'
  readonly RETENTION_NOTIFICATIONS_DAYS: number
  readonly RETENTION_DEAD_DAYS: number
  readonly RETENTION_TOMBSTONES_DAYS: number
  readonly ALLOW_PRIVATE_ADDRESSES?: string
  readonly METRICS_PEERS: number
  readonly UPDATE_CHECK_URL?: string
  readonly ISOLATED: 'true' | 'false'
  readonly BACKUP_TO?: string
  readonly BACKUP_S3_ENDPOINT?: string
  readonly BACKUP_S3_REGION: string
  readonly BACKUP_S3_ACCESS_KEY_ID?: string
  readonly BACKUP_S3_SECRET_ACCESS_KEY?: string
  readonly BACKUP_RECIPIENTS: string
  readonly BACKUP_AT: string
  readonly BACKUP_PICTURES?: 'include' | 'reference'
  readonly BACKUP_KEEP: string
}

const KEEP_PATTERN = /^(?=.)(?:([0-9]{1,4})d)?(?:([0-9]{1,4})w)?(?:([0-9]{1,4})m)?$/

/** A JSON schema. */
interface SettingSchema {
  readonly type: 'string' | 'integer' | 'number'
  /** The end of the sentence "NAME must be …" for an invalid value. */
  readonly description: string
  readonly [keyword: string]: unknown
}

const settings = {
  POD_URL: { type: 'string', description: 'the public http or https address of the pod' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 3000, description: 'a port number from 0 to 65535' },
  HOST: { type: 'string', minLength: 1, default: '127.0.0.1', description: 'an address or a socket path' },
  DATABASE_URL: { type: 'string', description: 'a postgres:// address' },
  DATABASE_READ_URL: { type: 'string', description: 'a postgres:// address' },
  DATABASE_POOL: { type: 'integer', minimum: 2, maximum: 1000, description: 'a number of connections from 2 to 1000' },
  REDIS_URL: { type: 'string', description: 'a redis:// address' },
  REDIS_REPLICAS: { type: 'integer', minimum: 0, maximum: 8, description: 'a number of replicas from 0 to 8' },
  WORKER_QUEUES: { type: 'string', default: '', description: 'names of queues, separated by commas' },
  WORKER_CONCURRENCY: { type: 'string', default: '', description: 'a list like inbound=8,fetch=16' },
  CRYPTO_THREADS: { type: 'integer', minimum: 1, maximum: 256, description: 'a number of threads from 1 to 256' },
  INBOUND_BYTES: {
    type: 'integer',
    minimum: 16 * 2 ** 20,
    maximum: 2 ** 40,
    default: 256 * 2 ** 20,
    description: 'a number of bytes from 16777216, two of the largest messages, to 1099511627776',
  },
  DATA_DIR: { type: 'string', minLength: 1, default: 'var', description: 'the path of a folder' },
  UPLOADS_DIR: { type: 'string', minLength: 1, description: 'the path of a folder' },
  STORAGE: { type: 'string', enum: ['folder', 's3'], default: 'folder', description: 'folder or s3' },
  UPLOADS_FALLBACK: { type: 'string', enum: ['folder', 's3'], description: 'folder or s3' },
  S3_ENDPOINT: { type: 'string', description: 'an http or https address' },
  S3_REGION: { type: 'string', minLength: 1, default: 'us-east-1', description: 'the name of a region' },
  S3_BUCKET: {
    type: 'string',
    pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
    description: 'the name of a bucket',
  },
  S3_PREFIX: {
    type: 'string',
    default: '',
    pattern: '^([A-Za-z0-9_.-]+/)*$',
    description: 'a path like pod/ that ends with a slash',
  },
  S3_ACCESS_KEY_ID: { type: 'string', description: 'the id of an access key' },
  S3_SECRET_ACCESS_KEY: { type: 'string', description: 'the secret of an access key' },
  S3_PATH_STYLE: { type: 'string', enum: ['true', 'false'], description: 'true or false' },
  S3_DELIVERY: { type: 'string', enum: ['proxy', 'redirect'], default: 'proxy', description: 'proxy or redirect' },
  UPLOADS_BASE_URL: { type: 'string', description: 'an http or https address' },
  PHOTO_BYTES: {
    type: 'integer',
    minimum: 64 * 2 ** 10,
    maximum: 64 * 2 ** 20,
    default: 10 * 2 ** 20,
    description: 'a number of bytes from 65536 to 67108864',
  },
  PHOTO_QUOTA: {
    type: 'integer',
    minimum: 0,
    maximum: 2 ** 50,
    default: 2 ** 30,
    description: 'a number of bytes, or 0 for no limit',
  },
  IMPORTS: { type: 'string', enum: ['on', 'operator', 'off'], default: 'on', description: 'on, operator or off' },
  IMPORT_BYTES: {
    type: 'integer',
    minimum: 2 ** 20,
    maximum: 2 ** 36,
    default: 512 * 2 ** 20,
    description: 'a number of bytes from 1048576 to 68719476736',
  },
  IMPORT_PHOTO_BYTES: {
    type: 'integer',
    minimum: 2 ** 20,
    maximum: 2 ** 40,
    default: 5 * 2 ** 30,
    description: 'a number of bytes from 1048576 to 1099511627776',
  },
  IMPORT_TOTAL_BYTES: {
    type: 'integer',
    minimum: 2 ** 20,
    maximum: 2 ** 50,
    default: 20 * 2 ** 30,
    description: 'a number of bytes from 1048576 to 1125899906842624',
  },
  POD_BYTES_PER_DAY: {
    type: 'integer',
    minimum: 0,
    maximum: 2 ** 50,
    default: 2 ** 31,
    description: 'a number of bytes, or 0 for no limit',
  },
  SPAM_CLUSTER_ITEMS: {
    type: 'integer',
    minimum: 2,
    maximum: 10_000,
    default: 5,
    description: 'a number from 2 to 10000',
  },
  SPAM_CLUSTER_AUTHORS: {
    type: 'integer',
    minimum: 2,
    maximum: 10_000,
    default: 3,
    description: 'a number from 2 to 10000',
  },
  SPAM_AUTHOR_ITEMS: {
    type: 'integer',
    minimum: 2,
    maximum: 10_000,
    default: 10,
    description: 'a number from 2 to 10000',
  },
  SPAM_AUTHOR_THREADS: {
    type: 'integer',
    minimum: 2,
    maximum: 10_000,
    default: 5,
    description: 'a number from 2 to 10000',
  },
  SPAM_CONVERSATIONS: {
    type: 'integer',
    minimum: 2,
    maximum: 10_000,
    default: 20,
    description: 'a number from 2 to 10000',
  },
  SPAM_AUTO_HIDE: { type: 'string', enum: ['on', 'off'], default: 'off', description: 'on or off' },
  SECRET_KEY: { type: 'string', minLength: 32, maxLength: 1024, description: 'a text of at least 32 characters' },
  TRUST_PROXY: { type: 'string', default: 'loopback', description: 'loopback, true, false, or addresses and networks' },
  // The process has 30 seconds to end in all.
  SHUTDOWN_DELAY: {
    type: 'integer',
    minimum: 0,
    maximum: 15,
    default: 0,
    description: 'a number of seconds from 0 to 15',
  },
  LOG_LEVEL: {
    type: 'string',
    enum: ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    description: 'one of trace, debug, info, warn, error, fatal, silent',
  },
  LOG_FORMAT: {
    type: 'string',
    enum: ['json', 'pretty', 'auto'],
    default: 'auto',
    description: 'json, pretty or auto',
  },
  ADMIN_LISTEN: { type: 'string', description: 'host:port, a port or a socket path' },
  ADMIN_CONSOLE: { type: 'string', enum: ['on', 'off'], default: 'on', description: 'on or off' },
  ADMIN_CONSOLE_NETWORKS: {
    type: 'string',
    default: '',
    description: 'networks like 192.0.2.0/24, separated by commas',
  },
  ADMIN_API_ORIGINS: {
    type: 'string',
    default: '',
    description: 'origins like https://admin.example, separated by commas',
  },
  STAFF_SECOND_FACTOR: { type: 'string', enum: ['on', 'off'], default: 'off', description: 'on or off' },
  POD_NAME: { type: 'string', maxLength: 255, default: '', description: 'a text of at most 255 characters' },
  PODMIN_ACCOUNT: { type: 'string', maxLength: 255, description: 'a name of at most 255 characters' },
  REGISTRATIONS: { type: 'string', enum: ['open', 'invite', 'closed'], description: 'open, invite or closed' },
  SMTP_URL: { type: 'string', description: 'an address like smtp://user:password@mail.example:587' },
  MAIL_FROM: { type: 'string', description: 'an e-mail address' },
  MAIL_REPLY_TO: { type: 'string', description: 'an e-mail address' },
  MAIL_BOUNCE_ADDRESS: { type: 'string', description: 'an e-mail address' },
  MAIL_LIMIT: { type: 'integer', minimum: 1, maximum: 100_000, default: 60, description: 'a number from 1 to 100000' },
  DKIM_DOMAIN: { type: 'string', description: 'a domain' },
  DKIM_SELECTOR: { type: 'string', description: 'the name of a DKIM selector' },
  DKIM_KEY_FILE: { type: 'string', description: 'the path of a private key in PEM format' },
  SIGN_UP_CONFIRMATION: { type: 'string', enum: ['on', 'off'], description: 'on or off' },
  SIGN_UP_APPROVAL: { type: 'string', enum: ['on', 'off'], default: 'off', description: 'on or off' },
  SIGN_UP_BACKLOG: rateLimit(50),
  EMAIL_DOMAIN_BLOCKLIST: { type: 'string', default: '', description: 'domains, separated by commas' },
  DEFAULT_LANGUAGE: {
    ...{ type: 'string', default: 'en', pattern: '^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$' },
    description: 'the code of a language, like en or de',
  },
  LOCALES_DIR: { type: 'string', minLength: 1, description: 'the path of a folder' },
  PODMIN_CONTACT: {
    type: 'string',
    maxLength: 254,
    pattern: '^(https?://[^\\s<>"]+|[^\\s@<>",;:()]+@[A-Za-z0-9.-]+)$',
    description: 'an e-mail address, or an http or https address',
  },
  TERMS_FILE: { type: 'string', minLength: 1, description: 'the path of a file' },
  STATISTICS: { type: 'string', enum: ['on', 'off'], default: 'off', description: 'on or off' },
  SIGN_UPS_PER_DAY: rateLimit(30),
  REPORT_EVIDENCE_DAYS: {
    ...{ type: 'integer', minimum: 1, maximum: 365, default: 90 },
    description: 'a number of days from 1 to 365',
  },
  INVITATIONS_PER_USER: {
    ...{ type: 'integer', minimum: 0, maximum: 1_000, default: 5 },
    description: 'a number from 0 to 1000',
  },
  UNATTENDED_DAYS: {
    ...{ type: 'integer', minimum: 0, maximum: 365, default: 7 },
    description: 'a number of days from 0 to 365',
  },
  CLOSE_GRACE_DAYS: {
    type: 'integer',
    minimum: 0,
    maximum: 60,
    default: 7,
    description: 'a number of days from 0 to 60',
  },
  INACTIVE_ACCOUNT_DAYS: {
    type: 'integer',
    minimum: 0,
    maximum: 36_500,
    default: 0,
    // Owners are warned 30 days before.
    not: { minimum: 1, maximum: 30 },
    description: 'a number of days from 31, or 0 for never',
  },
  SIGN_IN_LIMIT: rateLimit(20),
  CLIENT_LIMIT: rateLimit(20),
  TOKEN_LIMIT: rateLimit(120),
  AUTHORIZATION_LIMIT: rateLimit(60),
  PAGE_LIMIT: rateLimit(300),
  WRITE_LIMIT: rateLimit(600),
  CLIENT_API_DIALECT: {
    type: 'string',
    enum: ['standard', 'diaspora'],
    default: 'standard',
    description: 'standard or diaspora',
  },
  USERNAME_BLACKLIST: {
    type: 'string',
    default:
      'admin,administrator,hostmaster,info,postmaster,root,ssl-admin,ssladmin,ssladministrator,sslwebmaster,sysadmin,webmaster',
    description: 'names, separated by commas',
  },
  OIDC_ISSUER: {
    type: 'string',
    pattern: '^https?://[^?#\\s]+$',
    description: 'the issuer of ID tokens, an http or https address',
  },
  IMAGE_REDIRECT_URL: { type: 'string', description: 'an http or https address' },
  RETENTION_POSTS_DAYS: {
    type: 'integer',
    minimum: 0,
    maximum: 36_500,
    default: 0,
    not: { minimum: 1, maximum: 29 },
    description: 'a number of days from 30, or 0 for ever',
  },
  RETENTION_WITH_COMMENTS: { type: 'string', enum: ['on', 'off'], default: 'off', description: 'on or off' },
  RETENTION_NOTIFICATIONS_DAYS: retentionDays(365, 0),
  RETENTION_DEAD_DAYS: retentionDays(30, 1),
  // A retraction may come back from a pod that was away for long.
  RETENTION_TOMBSTONES_DAYS: retentionDays(400, 90),
  ALLOW_PRIVATE_ADDRESSES: { type: 'string', description: 'true, false or a list of host:port' },
  ...TRACING_VARIABLES,
  METRICS_PEERS: { type: 'integer', minimum: 0, maximum: 1_000, default: 50, description: 'a number from 0 to 1000' },
  UPDATE_CHECK_URL: { type: 'string', description: 'an http or https address' },
  ISOLATED: { type: 'string', enum: ['true', 'false'], default: 'false', description: 'true or false' },
  BACKUP_TO: { type: 'string', minLength: 1, description: 'the path of a folder, or s3://bucket/prefix' },
  BACKUP_S3_ENDPOINT: { type: 'string', description: 'an http or https address' },
  BACKUP_S3_REGION: { type: 'string', minLength: 1, default: 'us-east-1', description: 'the name of a region' },
  BACKUP_S3_ACCESS_KEY_ID: { type: 'string', description: 'the id of an access key' },
  BACKUP_S3_SECRET_ACCESS_KEY: { type: 'string', description: 'the secret of an access key' },
  BACKUP_RECIPIENTS: {
    type: 'string',
    default: '',
    pattern: '^[\\s,]*(age1[0-9a-z]+[\\s,]*)*$',
    description: 'age recipients (age1…), separated by commas',
  },
  BACKUP_AT: {
    type: 'string',
    default: '03:30',
    pattern: '^(([01][0-9]|2[0-3]):[0-5][0-9]|off)$',
    description: 'a time like 03:30, or off',
  },
  BACKUP_PICTURES: { type: 'string', enum: ['include', 'reference'], description: 'include or reference' },
  BACKUP_KEEP: {
    type: 'string',
    default: '7d5w12m',
    pattern: KEEP_PATTERN.source,
    description: 'numbers of days, weeks and months like 7d5w12m',
  },
} as const satisfies Record<keyof Environment, SettingSchema>

/** The names of the settings that an environment has. */
export function namesOfSettings(environment: NodeJS.ProcessEnv): readonly string[] {
  return Object.keys(settings).filter((name) => Boolean(environment[name]))
}

// Types are coerced: environment variables are texts.
const validate = new Ajv({ allErrors: true, coerceTypes: true, useDefaults: true }).compile<Environment>({
  type: 'object',
  properties: settings,
})

/** Reads the settings. Throws one SettingsError that names every invalid variable. */
export function readConfig(processEnvironment: NodeJS.ProcessEnv): Config {
  const fileFaults: string[] = []
  const environment = withSettingFiles(processEnvironment, fileFaults)
  const variables: Record<string, unknown> = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== ''),
  )
  const wrong = validate(variables) ? [] : [...new Set((validate.errors ?? []).map(sentence))]
  const given = variables as unknown as Environment // with invalid values the function throws before it returns

  const faults = [...fileFaults, ...wrong]
  const url = readPodUrl(given.POD_URL ?? localUrl(given.PORT), faults)
  checkAddress('DATABASE_URL', given.DATABASE_URL, ['postgres:', 'postgresql:'], faults)
  checkAddress('DATABASE_READ_URL', given.DATABASE_READ_URL, ['postgres:', 'postgresql:'], faults)
  const redis = readRedis(given.REDIS_URL, faults)
  const workerQueues = readQueues(given.WORKER_QUEUES, faults)
  const workerConcurrency = readConcurrency(given.WORKER_CONCURRENCY, faults)
  const adminListen = readAdminListen(environment['ADMIN_LISTEN'], faults)
  const allowPrivateAddresses = readAllowPrivate(given.ALLOW_PRIVATE_ADDRESSES, faults)
  for (const name of ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'] as const) {
    checkAddress(name, given[name], ['http:', 'https:'], faults)
  }
  checkAddress('IMAGE_REDIRECT_URL', given.IMAGE_REDIRECT_URL, ['http:', 'https:'], faults)
  checkAddress('UPDATE_CHECK_URL', given.UPDATE_CHECK_URL, ['http:', 'https:'], faults)
  const s3 = readS3(given, faults)
  const uploadsBaseUrl = readUploadsBaseUrl(given.UPLOADS_BASE_URL, faults)
  const backupS3 = readBackupS3(given, faults)
  const trustProxy = readTrustProxy(given.TRUST_PROXY, faults)
  const staffAccess = readStaffAccess(given, faults)
  const mail = readMailSettings(given, faults)
  if (given.SIGN_UP_CONFIRMATION === 'on' && given.SMTP_URL === undefined) {
    faults.push('SIGN_UP_CONFIRMATION=on needs SMTP_URL: without a mail server no mailbox can be confirmed.')
  }
  checkBackupPictures(given, faults)
  if (faults.length > 0 || url === undefined) throw new SettingsError(faults)

  return {
    url: url.origin,
    host: url.host.replace(/^www\./, ''),
    listen: given.HOST.includes('/') ? { path: given.HOST } : { host: given.HOST, port: given.PORT },
    databaseUrl: given.DATABASE_URL,
    databaseReadUrl: given.DATABASE_READ_URL,
    databasePool: given.DATABASE_POOL,
    redisUrl: given.REDIS_URL,
    // A fail-over by Sentinel without an acknowledged replica would lose accepted messages.
    redisReplicas: given.REDIS_REPLICAS ?? (redis?.kind === 'sentinel' ? 1 : 0),
    workerQueues: given.ISOLATED === 'true' ? workerQueues.filter((queue) => LOCAL_QUEUES.has(queue)) : workerQueues,
    workerConcurrency,
    cryptoThreads: given.CRYPTO_THREADS ?? availableParallelism(),
    inboundBytes: given.INBOUND_BYTES,
    dataDir: resolve(given.DATA_DIR),
    uploadsDir: resolve(given.UPLOADS_DIR ?? join(given.DATA_DIR, 'uploads')),
    storage: given.STORAGE,
    uploadsFallback: given.UPLOADS_FALLBACK,
    s3,
    s3Delivery: given.S3_DELIVERY,
    uploadsBaseUrl,
    photoBytes: given.PHOTO_BYTES,
    photoQuota: given.PHOTO_QUOTA,
    ...importLimits(given),
    podBytesPerDay: given.POD_BYTES_PER_DAY,
    ...spamThresholds(given),
    secretKey: given.SECRET_KEY,
    trustProxy,
    shutdownDelayMs: given.SHUTDOWN_DELAY * 1_000,
    logLevel: given.LOG_LEVEL,
    logFormat: given.LOG_FORMAT,
    adminListen,
    ...staffAccess,
    podName: given.POD_NAME || url.host,
    defaultLanguage: given.DEFAULT_LANGUAGE,
    localesDir: given.LOCALES_DIR === undefined ? undefined : resolve(given.LOCALES_DIR),
    podminAccount: given.PODMIN_ACCOUNT?.toLowerCase(),
    podminContact: given.PODMIN_CONTACT,
    termsFile: given.TERMS_FILE === undefined ? undefined : resolve(given.TERMS_FILE),
    ...signUpSettings(given, url, mail),
    closeGraceDays: given.CLOSE_GRACE_DAYS,
    inactiveAccountDays: given.INACTIVE_ACCOUNT_DAYS,
    unattendedDays: given.UNATTENDED_DAYS,
    reportEvidenceDays: given.REPORT_EVIDENCE_DAYS,
    mail,
    statistics: given.STATISTICS === 'on',
    ...requestLimits(given),
    clientApiDialect: given.CLIENT_API_DIALECT,
    retention: retentionOf(given),
    tracing: readTracingSettings(given),
    metricsPeers: given.METRICS_PEERS,
    updateCheckUrl: given.UPDATE_CHECK_URL,
    isolated: given.ISOLATED === 'true',
    allowPrivateAddresses,
    backupTo: given.BACKUP_TO,
    backupS3,
    backupRecipients: given.BACKUP_RECIPIENTS,
    backupAt: given.BACKUP_AT === 'off' ? undefined : given.BACKUP_AT,
    backupPictures: given.BACKUP_PICTURES ?? (isAllInS3(given) ? 'reference' : 'include'),
    backupKeep: readBackupKeep(given.BACKUP_KEEP),
    oidcIssuer: given.OIDC_ISSUER,
    imageRedirectUrl: given.IMAGE_REDIRECT_URL?.replace(/\/+$/, ''),
  }
}

function readStaffAccess(given: Environment, faults: string[]) {
  return {
    console: given.ADMIN_CONSOLE === 'on',
    consoleNetworks: readNetworkList('ADMIN_CONSOLE_NETWORKS', given.ADMIN_CONSOLE_NETWORKS, faults),
    adminApiOrigins: readOrigins('ADMIN_API_ORIGINS', given.ADMIN_API_ORIGINS, faults),
    staffSecondFactor: given.STAFF_SECOND_FACTOR === 'on',
  }
}

/** Browsers send an origin in this form alone: lower case, without a path and a default port. */
function readOrigins(name: string, text: string, faults: string[]): readonly string[] {
  const origins = text
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '')
  for (const origin of origins) {
    const isOrigin = /^https?:\/\//.test(origin) && isUrl(origin) && new URL(origin).origin === origin
    if (!isOrigin) faults.push(`${name} has ${origin}, which is no origin like https://admin.example.`)
  }
  return origins
}

function importLimits(given: Environment) {
  return {
    imports: given.IMPORTS,
    importBytes: given.IMPORT_BYTES,
    importPhotoBytes: given.IMPORT_PHOTO_BYTES,
    importTotalBytes: given.IMPORT_TOTAL_BYTES,
  }
}

function spamThresholds(given: Environment) {
  return {
    spamClusterItems: given.SPAM_CLUSTER_ITEMS,
    spamClusterAuthors: given.SPAM_CLUSTER_AUTHORS,
    spamAuthorItems: given.SPAM_AUTHOR_ITEMS,
    spamAuthorThreads: given.SPAM_AUTHOR_THREADS,
    spamConversations: given.SPAM_CONVERSATIONS,
    spamAutoHide: given.SPAM_AUTO_HIDE === 'on',
  }
}

function requestLimits(given: Environment) {
  return {
    addressLimits: {
      signIns: given.SIGN_IN_LIMIT,
      clients: given.CLIENT_LIMIT,
      tokens: given.TOKEN_LIMIT,
      authorizations: given.AUTHORIZATION_LIMIT,
      pages: given.PAGE_LIMIT,
    },
    writeLimit: given.WRITE_LIMIT,
  }
}

function retentionOf(given: Environment): Config['retention'] {
  return {
    posts: given.RETENTION_POSTS_DAYS,
    withComments: given.RETENTION_WITH_COMMENTS === 'on',
    notifications: given.RETENTION_NOTIFICATIONS_DAYS,
    dead: given.RETENTION_DEAD_DAYS,
    tombstones: given.RETENTION_TOMBSTONES_DAYS,
  }
}

/** Queues whose jobs cause no request to another pod. */
const LOCAL_QUEUES: ReadonlySet<QueueName> = new Set(['inbound', 'inbound-private', 'notify', 'photos'])

function checkBackupPictures(given: Environment, faults: string[]): void {
  if (given.BACKUP_PICTURES !== 'reference' || isAllInS3(given)) return
  faults.push(
    'BACKUP_PICTURES=reference needs STORAGE=s3 without UPLOADS_FALLBACK: pictures in a folder must be in the backup.',
  )
}

/** While pictures move to S3, some are only in the folder. */
function isAllInS3({ STORAGE, UPLOADS_FALLBACK }: Environment): boolean {
  return STORAGE === 's3' && UPLOADS_FALLBACK !== 'folder'
}

function readBackupKeep(text: string): Config['backupKeep'] {
  const [, daily = 0, weekly = 0, monthly = 0] = KEEP_PATTERN.exec(text) ?? []
  return { daily: Number(daily), weekly: Number(weekly), monthly: Number(monthly) }
}

/** Who may sign up, and what they must do for it. */
function signUpSettings(given: Environment, url: URL, mail: Config['mail']) {
  return {
    registrations: given.REGISTRATIONS ?? (isThisMachine(url) ? 'open' : 'closed'),
    signUpsPerDay: given.SIGN_UPS_PER_DAY,
    invitationsPerUser: given.INVITATIONS_PER_USER,
    signUpConfirmation: mail !== undefined && given.SIGN_UP_CONFIRMATION !== 'off',
    signUpApproval: given.SIGN_UP_APPROVAL === 'on',
    signUpBacklog: given.SIGN_UP_BACKLOG,
    emailDomainBlocklist: list(given.EMAIL_DOMAIN_BLOCKLIST).map((domain) => domain.toLowerCase()),
    usernameBlacklist: list(given.USERNAME_BLACKLIST).map((name) => name.toLowerCase()),
  }
}

function retentionDays(days: number, least: number) {
  const description = `a number of days from ${least === 0 ? '0, which is for ever,' : least} to 36500`
  return { type: 'integer', minimum: least, maximum: 36_500, default: days, description } as const
}

function rateLimit(limit: number) {
  const description = 'a number from 0, which is no limit, to 1000000'
  return { type: 'integer', minimum: 0, maximum: 1_000_000, default: limit, description } as const
}

function sentence(error: ErrorObject): string {
  const name = error.instancePath.slice(1)
  const setting = Object.entries(settings).find(([key]) => key === name)?.[1] ?? {}
  return `${name} must be ${'description' in setting ? setting.description : error.message}.`
}

/** The default URL. An invalid PORT is reported once, as PORT; port 0 is unknown before the pod listens. */
function localUrl(port: number): string {
  const url = `http://localhost:${port || 3000}`
  return isUrl(url) ? url : 'http://localhost:3000'
}

function readPodUrl(text: string, faults: string[]): URL | undefined {
  const url = isUrl(text) ? new URL(text) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    faults.push('POD_URL must be a complete address like https://pod.example.')
    return undefined
  }
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '') {
    faults.push('POD_URL must be nothing but scheme, host and port, like https://pod.example: no path, query or user.')
    return undefined
  }
  return url
}

function checkAddress(name: string, text: string | undefined, schemes: readonly string[], faults: string[]): void {
  if (text === undefined) return
  if (isUrl(text) && schemes.includes(new URL(text).protocol)) return
  faults.push(`${name} must be an address that begins with ${schemes.map((scheme) => `${scheme}//`).join(' or ')}.`)
}

function readRedis(text: string | undefined, faults: string[]): RedisAddress | undefined {
  const address = text === undefined ? undefined : readRedisAddress(text)
  if (text !== undefined && address === undefined) {
    faults.push(
      'REDIS_URL must be an address that begins with redis://, rediss:// or unix://, or look like redis+cluster://host:port,host:port or redis+sentinel://host:port,host:port/master.',
    )
  }
  return address
}

/** The S3 store; undefined: no setting uses one. */
function readS3(given: Environment, faults: string[]): S3Settings | undefined {
  const { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY_ID: id, S3_SECRET_ACCESS_KEY: secret } = given
  checkAddress('S3_ENDPOINT', endpoint, ['http:', 'https:'], faults)
  const isUsed = given.STORAGE === 's3' || given.UPLOADS_FALLBACK === 's3'
  if (bucket === undefined || id === undefined || secret === undefined) {
    if (isUsed) faults.push('An S3 store needs S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.')
    return undefined
  }
  return {
    endpoint,
    region: given.S3_REGION,
    bucket,
    prefix: given.S3_PREFIX,
    accessKeyId: id,
    secretAccessKey: secret,
    isPathStyle: given.S3_PATH_STYLE === undefined ? endpoint !== undefined : given.S3_PATH_STYLE === 'true',
  }
}

/** An address without a path has the pictures under the path of this pod. */
function readUploadsBaseUrl(text: string | undefined, faults: string[]): string | undefined {
  if (text === undefined) return undefined
  const url = isUrl(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !['http:', 'https:'].includes(url.protocol) ||
    `${url.search}${url.hash}${url.username}` !== ''
  ) {
    faults.push('UPLOADS_BASE_URL must be an address like https://cdn.example or https://cdn.example/pod/images.')
    return undefined
  }
  if (url.pathname === '/') return `${url.origin}/uploads/images/`
  return url.href.replace(/\/*$/, '/')
}

function readBackupS3(given: Environment, faults: string[]): Config['backupS3'] {
  const { BACKUP_S3_ENDPOINT: endpoint, BACKUP_S3_REGION: region } = given
  const { BACKUP_S3_ACCESS_KEY_ID: accessKeyId, BACKUP_S3_SECRET_ACCESS_KEY: secretAccessKey } = given
  checkAddress('BACKUP_S3_ENDPOINT', endpoint, ['http:', 'https:'], faults)
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { endpoint, region, accessKeyId, secretAccessKey, isPathStyle: endpoint !== undefined }
}

function readQueues(text: string, faults: string[]): readonly QueueName[] {
  const names = list(text)
  const unknown = names.filter((name) => !isQueueName(name))
  if (unknown.length > 0) {
    faults.push(`WORKER_QUEUES names ${unknown.join(', ')}; there are ${QUEUES.join(', ')}.`)
  }
  return names.length === 0 ? QUEUES : [...new Set(names.filter(isQueueName))]
}

function readConcurrency(text: string, faults: string[]): Config['workerConcurrency'] {
  const pairs = list(text).map((pair) => pair.split('=').map((part) => part.trim()))
  const wrong = pairs.filter(
    ([queue, jobs, ...rest]) => rest.length > 0 || !isQueueName(queue ?? '') || !/^[1-9][0-9]{0,3}$/.test(jobs ?? ''),
  )
  if (wrong.length > 0) {
    faults.push(
      `WORKER_CONCURRENCY must look like fetch=32,outbound=128, with queues among ${QUEUES.join(', ')} and numbers from 1 to 9999.`,
    )
  }
  return Object.fromEntries(pairs.map(([queue, jobs]) => [queue, Number(jobs)]))
}

/** Unset means the default ports; an empty text turns the operator's server off. */
function readAdminListen(text: string | undefined, faults: string[]): Config['adminListen'] {
  if (text === undefined) return 'default'
  if (text.trim() === '') return 'off'
  if (text.includes('/')) return { path: text }
  const [, host, port] = /^(?:(\[[0-9a-fA-F:.]+\]|[^:[\]\s]+):)?([0-9]{1,5})$/.exec(text) ?? []
  if (port === undefined || Number(port) > 65_535) {
    faults.push(
      'ADMIN_LISTEN must be host:port, a port, a socket path, or empty for none; an IPv6 host stands in brackets.',
    )
    return 'off'
  }
  return { host: host?.replace(/^\[(.*)\]$/, '$1') ?? '127.0.0.1', port: Number(port) }
}

/** Whether the URL is reachable from this machine only. */
export function isThisMachine(url: URL | string): boolean {
  const { hostname } = new URL(url)
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.[0-9.]+$/.test(hostname)
}

function list(text: string): readonly string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
