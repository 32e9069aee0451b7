import { withoutRedisPassword } from '../jobs/queues/redis-address.js'
import type { Listen } from './addresses.js'
import type { Config } from './config.js'

/** Settings by name, with the text shown for unset ones. */
type Shown = Readonly<Record<string, string | number | null>>

/** The text for an unset setting. */
export const WHEN_NOT_SET: Readonly<Record<string, string>> = {
  DATABASE_URL: '(not set: the embedded PostgreSQL)',
  DATABASE_READ_URL: '(not set: lists are read where everything is written)',
  DATABASE_POOL: '(not set: what each kind of process needs)',
  REDIS_URL: '(not set: the queue is stored in PostgreSQL)',
  SECRET_KEY: '(not set: made once, kept in the data folder)',
  ADMIN_LISTEN: '(off)',
  SMTP_URL: '(not set: no mail)',
  BACKUP_TO: '(not set: no backups)',
  WORKER_CONCURRENCY: '(not set: what each queue needs)',
}

/** Total over Config: a new setting does not compile until it is shown here. */
const shownAs: { readonly [Key in keyof Config]: (value: Config[Key]) => Shown } = {
  url: (url) => ({ POD_URL: url }),
  host: () => ({}), // the second half of POD_URL
  podName: (name) => ({ POD_NAME: name }),
  defaultLanguage: (language) => ({ DEFAULT_LANGUAGE: language }),
  localesDir: (folder) => ({ LOCALES_DIR: folder ?? null }),
  listen: (listen) => ('path' in listen ? { HOST: listen.path, PORT: null } : { HOST: listen.host, PORT: listen.port }),
  adminListen: (listen) => ({ ADMIN_LISTEN: adminListen(listen) }),
  console: (served) => ({ ADMIN_CONSOLE: served ? 'on' : 'off' }),
  consoleNetworks: (networks) => ({ ADMIN_CONSOLE_NETWORKS: networks }),
  adminApiOrigins: (origins) => ({ ADMIN_API_ORIGINS: origins.join(',') }),
  staffSecondFactor: (isNeeded) => ({ STAFF_SECOND_FACTOR: isNeeded ? 'on' : 'off' }),
  databaseUrl: (url) => ({ DATABASE_URL: withoutPassword(url) }),
  databaseReadUrl: (url) => ({ DATABASE_READ_URL: withoutPassword(url) }),
  databasePool: (connections) => ({ DATABASE_POOL: connections ?? null }),
  redisUrl: (url) => ({ REDIS_URL: url === undefined ? null : withoutRedisPassword(url) }),
  redisReplicas: (replicas) => ({ REDIS_REPLICAS: replicas }),
  workerQueues: (queues) => ({ WORKER_QUEUES: queues.join(',') }),
  workerConcurrency: (jobs) => ({ WORKER_CONCURRENCY: concurrency(jobs) }),
  cryptoThreads: (threads) => ({ CRYPTO_THREADS: threads }),
  inboundBytes: (bytes) => ({ INBOUND_BYTES: bytes }),
  dataDir: (path) => ({ DATA_DIR: path }),
  uploadsDir: (path) => ({ UPLOADS_DIR: path }),
  storage: (kind) => ({ STORAGE: kind }),
  uploadsFallback: (kind) => ({ UPLOADS_FALLBACK: kind ?? null }),
  s3: (s3) => ({
    S3_ENDPOINT: s3?.endpoint ?? null,
    S3_REGION: s3?.region ?? null,
    S3_BUCKET: s3?.bucket ?? null,
    S3_PREFIX: s3?.prefix ?? null,
    S3_PATH_STYLE: s3 === undefined ? null : String(s3.isPathStyle),
  }),
  s3Delivery: (delivery) => ({ S3_DELIVERY: delivery }),
  uploadsBaseUrl: (address) => ({ UPLOADS_BASE_URL: address ?? null }),
  photoBytes: (bytes) => ({ PHOTO_BYTES: bytes }),
  photoQuota: (bytes) => ({ PHOTO_QUOTA: bytes }),
  imports: (mode) => ({ IMPORTS: mode }),
  importBytes: (bytes) => ({ IMPORT_BYTES: bytes }),
  importPhotoBytes: (bytes) => ({ IMPORT_PHOTO_BYTES: bytes }),
  importTotalBytes: (bytes) => ({ IMPORT_TOTAL_BYTES: bytes }),
  podBytesPerDay: (bytes) => ({ POD_BYTES_PER_DAY: bytes }),
  spamClusterItems: (count) => ({ SPAM_CLUSTER_ITEMS: count }),
  spamClusterAuthors: (count) => ({ SPAM_CLUSTER_AUTHORS: count }),
  spamAuthorItems: (count) => ({ SPAM_AUTHOR_ITEMS: count }),
  spamAuthorThreads: (count) => ({ SPAM_AUTHOR_THREADS: count }),
  spamConversations: (count) => ({ SPAM_CONVERSATIONS: count }),
  spamAutoHide: (hidden) => ({ SPAM_AUTO_HIDE: hidden ? 'on' : 'off' }),
  secretKey: (key) => ({ SECRET_KEY: key === undefined ? null : '(set)' }),
  trustProxy: (trust) => ({ TRUST_PROXY: String(trust) }),
  shutdownDelayMs: (milliseconds) => ({ SHUTDOWN_DELAY: milliseconds / 1_000 }),
  logLevel: (level) => ({ LOG_LEVEL: level }),
  logFormat: (format) => ({ LOG_FORMAT: format }),
  registrations: (registrations) => ({ REGISTRATIONS: registrations }),
  signUpsPerDay: (count) => ({ SIGN_UPS_PER_DAY: count }),
  closeGraceDays: (days) => ({ CLOSE_GRACE_DAYS: days }),
  inactiveAccountDays: (days) => ({ INACTIVE_ACCOUNT_DAYS: days }),
  invitationsPerUser: (count) => ({ INVITATIONS_PER_USER: count }),
  unattendedDays: (days) => ({ UNATTENDED_DAYS: days }),
  reportEvidenceDays: (days) => ({ REPORT_EVIDENCE_DAYS: days }),
  podminAccount: (name) => ({ PODMIN_ACCOUNT: name ?? null }),
  podminContact: (contact) => ({ PODMIN_CONTACT: contact ?? null }),
  sourceUrl: (url) => ({ SOURCE_URL: url ?? null }),
  termsFile: (file) => ({ TERMS_FILE: file ?? null }),
  mail: (mail) => ({
    SMTP_URL: withoutPassword(mail?.url),
    MAIL_FROM: mail?.from ?? null,
    MAIL_REPLY_TO: mail?.replyTo ?? null,
    MAIL_BOUNCE_ADDRESS: mail?.bounceAddress ?? null,
    MAIL_LIMIT: mail?.perMinute ?? null,
    DKIM_DOMAIN: mail?.dkim?.domain ?? null,
    DKIM_SELECTOR: mail?.dkim?.selector ?? null,
    DKIM_KEY_FILE: mail?.dkim?.keyFile ?? null,
  }),
  signUpConfirmation: (needed) => ({ SIGN_UP_CONFIRMATION: needed ? 'on' : 'off' }),
  signUpApproval: (needed) => ({ SIGN_UP_APPROVAL: needed ? 'on' : 'off' }),
  signUpBacklog: (count) => ({ SIGN_UP_BACKLOG: count }),
  emailDomainBlocklist: (domains) => ({ EMAIL_DOMAIN_BLOCKLIST: domains.join(',') }),
  statistics: (shown) => ({ STATISTICS: shown ? 'on' : 'off' }),
  addressLimits: ({ signIns, clients, tokens, authorizations, pages }) => ({
    SIGN_IN_LIMIT: signIns,
    CLIENT_LIMIT: clients,
    TOKEN_LIMIT: tokens,
    AUTHORIZATION_LIMIT: authorizations,
    PAGE_LIMIT: pages,
  }),
  writeLimit: (times) => ({ WRITE_LIMIT: times }),
  clientApiDialect: (dialect) => ({ CLIENT_API_DIALECT: dialect }),
  allowPrivateAddresses: (allowed) => ({
    ALLOW_PRIVATE_ADDRESSES: typeof allowed === 'string' ? String(allowed === 'all') : [...allowed].join(','),
  }),
  retention: ({ posts, withComments, notifications, dead, tombstones }) => ({
    RETENTION_POSTS_DAYS: posts,
    RETENTION_WITH_COMMENTS: withComments ? 'on' : 'off',
    RETENTION_NOTIFICATIONS_DAYS: notifications,
    RETENTION_DEAD_DAYS: dead,
    RETENTION_TOMBSTONES_DAYS: tombstones,
  }),
  tracing: (tracing) => ({
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracing?.endpoint ?? null,
    OTEL_TRACES_SAMPLER_ARG: tracing?.ratio ?? null,
  }),
  metricsPeers: (peers) => ({ METRICS_PEERS: peers }),
  updateCheckUrl: (url) => ({ UPDATE_CHECK_URL: url ?? null }),
  isolated: (isolated) => ({ ISOLATED: String(isolated) }),
  backupTo: (place) => ({ BACKUP_TO: place ?? null }),
  backupS3: (s3) => ({ BACKUP_S3_ENDPOINT: s3?.endpoint ?? null, BACKUP_S3_REGION: s3?.region ?? null }),
  backupRecipients: (recipients) => ({ BACKUP_RECIPIENTS: recipients }),
  backupAt: (time) => ({ BACKUP_AT: time ?? 'off' }),
  backupPictures: (pictures) => ({ BACKUP_PICTURES: pictures }),
  backupKeep: ({ daily, weekly, monthly }) => ({ BACKUP_KEEP: `${daily}d${weekly}w${monthly}m` }),
  oidcIssuer: (issuer) => ({ OIDC_ISSUER: issuer ?? null }),
  imageRedirectUrl: (address) => ({ IMAGE_REDIRECT_URL: address ?? null }),
  usernameBlacklist: (names) => ({ USERNAME_BLACKLIST: names.join(',') }),
}

/** The settings in force, without secrets. */
export function listShownSettings(config: Config): Shown {
  const show = <Key extends keyof Config>(key: Key) => shownAs[key](config[key])
  return Object.assign({}, ...(Object.keys(shownAs) as (keyof Config)[]).map(show)) // its keys are those of Config
}

function concurrency(jobs: Config['workerConcurrency']): string | null {
  const pairs = Object.entries(jobs).map(([queue, count]) => `${queue}=${count}`)
  return pairs.join(',') || null
}

function adminListen(listen: Config['adminListen']): string | null {
  if (listen === 'off') return null
  return listen === 'default' ? '127.0.0.1:9394 web, 127.0.0.1:9395 worker' : addressOf(listen)
}

function addressOf(listen: Listen): string {
  return 'path' in listen ? listen.path : `${listen.host}:${listen.port}`
}

/** Queries may contain passwords (`?password=`), so such a query is masked as a whole. */
function withoutPassword(address: string | undefined): string | null {
  if (address === undefined) return null
  const url = new URL(address)
  if (url.password !== '') url.password = '***'
  for (const name of url.searchParams.keys()) if (/pass|key|secret/i.test(name)) url.searchParams.set(name, '***')
  return url.href
}
