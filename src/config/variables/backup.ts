import { choice, httpAddress, onOff, retentionDays, setting, text } from '../schemas.js'

/** Numbers of days, weeks and months. */
export const KEEP_PATTERN = /^(?=.)(?:([0-9]{1,4})d)?(?:([0-9]{1,4})w)?(?:([0-9]{1,4})m)?$/

export const BACKUP_VARIABLES = {
  RETENTION_POSTS_DAYS: setting(
    {
      type: 'integer',
      minimum: 0,
      maximum: 36_500,
      default: 0,
      not: { minimum: 1, maximum: 29 },
      description: 'a number of days from 30, or 0 for ever',
    },
    'Public posts of other pods are removed after this number of days (at least 30) without an interaction, unless a local user has interacted with them or follows their author or a tag. They can be fetched again. 0: never. See [operating.md](operating.md#remove-old-content)',
  ),
  RETENTION_WITH_COMMENTS: setting(onOff('off'), '`on`: posts with comments are removed as well'),
  RETENTION_NOTIFICATIONS_DAYS: setting(
    retentionDays(365, 0),
    'Days for which read notifications are kept. 0: forever',
  ),
  RETENTION_DEAD_DAYS: setting(
    retentionDays(30, 1),
    'Days for which given-up outbox rows and deliveries are kept: at most 100 000 and 1 GiB, and the same of received messages',
  ),
  // A pod that was away for long may send a retraction late.
  RETENTION_TOMBSTONES_DAYS: setting(
    retentionDays(400, 90),
    'Days for which deletions by other pods are remembered, at least 90',
  ),
  ISOLATED: setting(
    choice(['true', 'false'], 'false'),
    '`true`: for a restored copy alongside the original. The pod sends no request to other pods, delivers nothing, runs no schedules, deletes no pictures, makes no exports, imports no archives and ignores `DATABASE_READ_URL`. It does not start while the original runs on the same database; `UPLOADS_DIR` must be in `DATA_DIR`; `HOST` must be an address of this machine (`127.0.0.1`, `::1`) or a socket. `/health/ready` and every page show this',
  ),
  BACKUP_TO: setting(
    { type: 'string', minLength: 1, description: 'the path of a folder, or s3://bucket/prefix' },
    'Where `pod backup` stores backups: a folder (best on another disk or machine) or `s3://bucket/prefix`',
    { example: '/mnt/backups' },
  ),
  BACKUP_S3_ENDPOINT: setting(httpAddress, 'The S3 store of `BACKUP_TO`; the store of pictures has its own settings', {
    whenNotSet: 'Amazon',
    example: 'https://s3.example',
  }),
  BACKUP_S3_REGION: setting(
    { type: 'string', minLength: 1, default: 'us-east-1', description: 'the name of a region' },
    'The region of the S3 store of `BACKUP_TO`',
  ),
  BACKUP_S3_ACCESS_KEY_ID: setting(text('the id of an access key'), 'The key of the S3 store of `BACKUP_TO`'),
  BACKUP_S3_SECRET_ACCESS_KEY: setting(text('the secret of an access key'), 'The secret of `BACKUP_S3_ACCESS_KEY_ID`'),
  BACKUP_RECIPIENTS: setting(
    {
      type: 'string',
      default: '',
      pattern: '^[\\s,]*(age1[0-9a-z]+[\\s,]*)*$',
      description: 'age recipients (age1…), separated by commas',
    },
    'age recipients (`age1…`, separated by commas) for whom backups are encrypted. `pod backup keygen` creates a key pair',
    { example: 'age1…' },
  ),
  BACKUP_AT: setting(
    {
      type: 'string',
      default: '03:30',
      pattern: '^(([01][0-9]|2[0-3]):[0-5][0-9]|off)$',
      description: 'a time like 03:30, or off',
    },
    'Time (UTC) of the daily backup, which a worker makes if `BACKUP_TO` and `BACKUP_RECIPIENTS` are set. `off`: no daily backup',
  ),
  BACKUP_PICTURES: setting(
    choice(['include', 'reference']),
    '`include`: backups contain the pictures. `reference`: backups list the pictures, which stay in the S3 store',
    { whenNotSet: '`include`; `reference` if `STORAGE=s3`', example: 'include' },
  ),
  BACKUP_KEEP: setting(
    {
      type: 'string',
      default: '7d5w12m',
      pattern: KEEP_PATTERN.source,
      description: 'numbers of days, weeks and months like 7d5w12m',
    },
    'Number of days, weeks and months for each of which the last backup is kept. The daily backup removes older ones',
  ),
} as const
