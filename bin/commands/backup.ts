import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { type Config, namesOfSettings, readConfig } from '../../src/config/config.js'
import { messageOf } from '../../src/errors/thrown.js'
import { BackupError } from '../../src/operations/backup/backup-error.js'
import { withBackupLock } from '../../src/operations/backup/backup-lock.js'
import { type CreateOptions as BackupOptions, createBackup } from '../../src/operations/backup/create-backup.js'
import { type DeletedBackups, deleteBackups } from '../../src/operations/backup/delete-backups.js'
import { generateBackupKey, readIdentities, readRecipients } from '../../src/operations/backup/encryption.js'
import { type ListedBackup, listBackups, recordVerification } from '../../src/operations/backup/list-backups.js'
import { ageInHours, type Manifest, requireManifest } from '../../src/operations/backup/manifest.js'
import {
  hasPassphraseIdentity,
  openPassphraseRecipient,
  readPassphraseIdentities,
} from '../../src/operations/backup/passphrase-identity.js'
import { openRepository, type Repository } from '../../src/operations/backup/repositories/repository.js'
import { openTarRepository, type TarRepository } from '../../src/operations/backup/repositories/tar-repository.js'
import { type Restored, restoreBackup } from '../../src/operations/backup/restore-backup.js'
import { checkRestore } from '../../src/operations/backup/restore-checks.js'
import type { Retention } from '../../src/operations/backup/retention.js'
import { verifyBackup } from '../../src/operations/backup/verify-backup.js'
import { recordForeignBackup } from '../../src/persistence/operations/backup-runs.js'
import { borrowDatabase } from '../borrow-database.js'
import { CommandError } from '../command-error.js'
import { explainDatabaseErrors } from '../explain-database-error.js'
import { runInterruptible } from '../interruptible.js'
import { readBytes, readCount, readTime } from '../options.js'
import { type OutputOptions, print, table } from '../output.js'
import { describeBytes, showProgress } from '../progress.js'
import { type Prompts, withPrompts } from '../prompts.js'
import { readCommandConfig } from '../read-command-config.js'
import { requirePictureStores } from '../require-picture-stores.js'
import { withPod } from '../with-pod.js'

interface FromOption {
  readonly from?: string
}

interface IdentityOption {
  readonly identity?: string
  readonly passphrase?: boolean
}

interface CreateOptions extends OutputOptions {
  readonly to?: string
  readonly plain?: boolean
  readonly passphrase?: boolean
  readonly forget?: boolean
  readonly yes?: boolean
}

interface VerifyOptions extends OutputOptions, FromOption, IdentityOption {
  readonly start?: boolean
}

interface ForgetOptions extends OutputOptions, FromOption {
  readonly keepDaily?: number
  readonly keepWeekly?: number
  readonly keepMonthly?: number
  readonly dryRun?: boolean
}

interface RestoreOptions extends OutputOptions, IdentityOption {
  readonly picturesTo?: string
  readonly replace?: boolean
  readonly confirm?: string
  readonly endTokens?: boolean
}

export function backupCommands(program: Command): void {
  const backup = program
    .command('backup')
    .description('Encrypted backups of the whole pod: database, pictures, secret key and accepted messages.')

  backup
    .command('keygen')
    .description('Prints a new key pair. The identity decrypts backups: do not store it on the pod.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup keygen > identity.txt')
    .action(keygen)

  backup
    .command('create')
    .description('Creates a backup. The pod may be running. Pictures that the target already has are not stored again.')
    .option('--to <target>', 'a folder, s3://bucket/prefix, or - for a tar stream; default: BACKUP_TO')
    .option('--passphrase', 'encrypt with a passphrase, typed by hand, instead of BACKUP_RECIPIENTS')
    .option('--plain', 'without encryption')
    .option('--yes', 'confirm --plain')
    .option('--forget', 'then remove old backups according to BACKUP_KEEP')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup create --to /mnt/backups')
    .action(create)

  backup
    .command('list')
    .description('Lists the complete backups, newest first.')
    .option('--from <folder>', 'where backups are stored; default: BACKUP_TO')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup list --from /mnt/backups')
    .action(list)

  backup
    .command('verify <id>')
    .description('Checks that all files of a backup are present and unchanged. With an identity it also decrypts them.')
    .option('--from <folder>', 'where backups are stored; default: BACKUP_TO')
    .option('--identity <file>', 'file with the identity that decrypts the backup')
    .option('--passphrase', 'decrypt with the passphrase of the backup, typed by hand')
    .option('--json', 'print JSON')
    .option('--start', 'also restore it into a temporary database, and check pages and keys of the copy')
    .addHelpText('after', '\nExample:\n  pod backup verify 20260731T033000Z-5f0c --identity identity.txt')
    .action(verify)

  backup
    .command('record')
    .description('Records a backup that another program has made, for the console and the metrics.')
    .requiredOption('--tool <name>', 'the program')
    .option('--at <time>', 'start of the backup; default: now', readTime)
    .option('--bytes <number>', 'size of the backup', readBytes)
    .option('--verified', 'the backup was restored, or verified in another way')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup record --tool pgbackrest --bytes 1200000')
    .action(record)

  backup
    .command('forget')
    .description('Removes old backups, and pictures that no other backup has. The newest complete backup always stays.')
    .option('--from <folder>', 'where backups are stored; default: BACKUP_TO')
    .option('--keep-daily <days>', 'keep the last backup of each of the last <days> days', readCount)
    .option('--keep-weekly <weeks>', 'keep the last backup of each of the last <weeks> weeks', readCount)
    .option('--keep-monthly <months>', 'keep the last backup of each of the last <months> months', readCount)
    .option('--dry-run', 'remove nothing; show what would be removed')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup forget --keep-daily 7 --keep-weekly 5 --keep-monthly 12 --dry-run')
    .action(forget)

  backup
    .command('restore <folder> <id>')
    .description('Restores a backup into an empty database and an empty folder of pictures. The pod must be stopped.')
    .option('--identity <file>', 'file with the identity that decrypts the backup')
    .option('--passphrase', 'decrypt with the passphrase of the backup, typed by hand')
    .option('--pictures-to <store>', 'where pictures are written: a folder, or s3; default: as STORAGE says')
    .option('--replace', 'rename the existing database, pictures and secret key; nothing is deleted')
    .option('--confirm <host>', 'the host of the pod, to confirm --replace without being asked')
    .option('--end-tokens', 'end the access of all applications')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod backup restore /mnt/backups 20260731T033000Z-5f0c --identity identity.txt')
    .action(restore)
}

async function keygen(options: OutputOptions): Promise<void> {
  const { identity, recipient } = await generateBackupKey()
  print(options, { identity, recipient }, [
    `# created: ${new Date().toISOString()}`,
    `# public key: ${recipient}`,
    identity,
  ])
  if (!options.json) {
    process.stderr.write(
      `Recipient, for the setting BACKUP_RECIPIENTS: ${recipient}\nKeep the identity away from the pod. Without it no backup can be restored.\n`,
    )
  }
}

async function create({ to, plain, passphrase, yes, forget: removeOld, ...options }: CreateOptions): Promise<void> {
  const config = readConfig(process.env)
  const stream = to === '-' ? openStream() : undefined
  const repository = stream ?? repositoryOf(to, config)
  if (stream !== undefined && removeOld) throw new CommandError('--forget needs a folder or bucket, not a stream.')
  if (plain && passphrase) throw new CommandError('Give --plain or --passphrase, not both.')
  if (plain && !yes) {
    throw new CommandError(
      'A backup without encryption holds all private messages and keys as text: add --yes to confirm.',
    )
  }
  const key = await keyOf(repository, config, { plain, passphrase })
  if (!plain && key.recipients.length === 0) {
    throw new CommandError(
      'There is no recipient: set BACKUP_RECIPIENTS to the recipient of "pod backup keygen", or use --passphrase.',
    )
  }
  const progress = showProgress()
  const manifest = await runInterruptible(
    'The pod is unchanged, and there is no backup of this run. Run the command again: stored pictures are not copied twice.',
    (signal) =>
      withPod(async (services) => {
        await requirePictureStores(services)
        const settings = namesOfSettings(process.env)
        return createBackup(services, { repository, ...key, settings, signal, report: progress.report })
      }),
  ).finally(progress.end)
  const removal = removeOld ? await removeOldBackups(repository, config.backupKeep, false) : undefined
  const removedFields = removal && { forgotten: removal.deleted }
  if (stream !== undefined) {
    await stream.end()
    process.stderr.write(`Backup ${manifest.id} is complete.\n`)
    return
  }
  print(options, { ...summaryOf(manifest), missing_pictures: manifest.pictures.missing, ...removedFields }, [
    `Backup ${manifest.id} is complete: ${manifest.rows} rows and ${manifest.pictures.count} pictures, ${describeBytes(manifest.bytes)}, of which ${describeBytes(manifest.bytes_new)} are new.`,
    ...(manifest.pictures.missing > 0 ? [`${manifest.pictures.missing} photos had no file on the pod.`] : []),
    ...(removal === undefined ? [] : [`${removal.deleted.length} old backups are removed.`]),
  ])
}

/** A closed pipe is a failed backup. For other commands, it only means that the reader has seen enough. */
function openStream(): TarRepository {
  process.stdout.removeAllListeners('error')
  return openTarRepository(process.stdout)
}

async function list({ from, ...options }: OutputOptions & FromOption): Promise<void> {
  const repository = repositoryOf(from, readConfig(process.env))
  const damaged: BackupError[] = []
  const backups = await listBackups(repository, (error) => damaged.push(error))
  printBackups(options, backups, repository)
  if (damaged.length > 0) throw new CommandError(damaged.map(messageOf).join(' '))
}

function printBackups(options: OutputOptions, backups: readonly ListedBackup[], { place }: Repository): void {
  if (backups.length === 0) {
    print(options, [], [`There is no complete backup in ${place}.`])
    return
  }
  print(options, backups.map(present), [
    ...table([
      ['id', 'made at', 'age', 'version', 'rows', 'new', 'total', 'state', 'verified'],
      ...backups.map(({ manifest, complete, verifiedAt }) => [
        manifest.id,
        manifest.started_at,
        describeAge(manifest),
        manifest.version,
        String(manifest.rows),
        describeBytes(manifest.bytes_new),
        describeBytes(manifest.bytes),
        complete ? 'complete' : 'files are missing',
        verifiedAt?.toISOString() ?? 'never',
      ]),
    ]),
    backups.length === 1 ? '1 backup' : `${backups.length} backups`,
  ])
}

function describeAge(manifest: Manifest): string {
  const hours = ageInHours(manifest, new Date())
  return hours < 48 ? `${hours} hours` : `${Math.floor(hours / 24)} days`
}

function present({ manifest, complete, verifiedAt }: ListedBackup) {
  return { ...summaryOf(manifest), complete, verified_at: verifiedAt?.toISOString() ?? null }
}

function summaryOf({ id, started_at: created_at, version, rows, bytes_new, bytes }: Manifest) {
  return { id, created_at, version, rows, bytes_new, bytes }
}

async function verify(id: string, { from, identity, passphrase, start, ...options }: VerifyOptions): Promise<void> {
  const repository = repositoryOf(from, readConfig(process.env))
  const manifest = await requireManifest(repository, id)
  const identities = await withPrompts((prompts) => identitiesOf(prompts, repository, { identity, passphrase }))
  if (start && identities === undefined && manifest.recipients.length > 0) {
    throw new CommandError(`--start decrypts the backup. ${describeMissingIdentity(manifest)}`)
  }
  const progress = showProgress()
  const faults = await runInterruptible('Nothing was changed.', async (signal) => {
    const work = { repository, identities, signal, report: progress.report }
    const faults = await verifyBackup(manifest, work)
    if (!start || faults.length > 0) return faults
    // The web process that is started takes longer to load than all other parts of the command.
    const { startRestoredCopy } = await import('../start-restored-copy.js')
    return startRestoredCopy(manifest, work)
  }).finally(progress.end)
  if (faults.length === 0) await tryRecordVerification(repository, id)
  const isOpened = identities !== undefined || manifest.recipients.length === 0
  print(options, { id, faults, decrypted: isOpened, started: start ?? false }, [
    ...faults,
    ...(faults.length > 0
      ? []
      : [
          isOpened
            ? `Backup ${id} is complete: all files were decrypted, with ${manifest.rows} rows and ${manifest.pictures.count} pictures.`
            : `All files of backup ${id} are present and unchanged. Use --identity to decrypt them too.`,
          ...(start ? ['A restored copy was started: its pages, a picture and its keys are correct.'] : []),
        ]),
  ])
  if (faults.length > 0)
    throw new CommandError(
      faults.length === 1 ? 'The backup has one fault.' : `The backup has ${faults.length} faults.`,
    )
}

/** A copy of the backups may be read-only. */
async function tryRecordVerification(repository: Repository, id: string): Promise<void> {
  try {
    await recordVerification(repository, id, new Date())
  } catch (error) {
    if (!(error instanceof BackupError)) throw error
    process.stderr.write(`The verification is not recorded, because ${repository.place} cannot be written.\n`)
  }
}

interface RecordOptions extends OutputOptions {
  readonly tool: string
  readonly at?: Date
  readonly bytes?: number | null
  readonly verified?: boolean
}

async function record({ tool, at, bytes = null, verified = false, ...options }: RecordOptions): Promise<void> {
  const now = new Date()
  const startedAt = at ?? now
  if (startedAt > now) throw new CommandError('--at is in the future.')
  if (tool.length > TOOL_CHARACTERS) throw new CommandError(`--tool has at most ${TOOL_CHARACTERS} characters.`)
  const backup = { tool, at: startedAt, bytes, isVerified: verified }
  const id = await withPod(({ db }) => recordForeignBackup(db, backup, now))
  print(options, { id, tool, at: startedAt.toISOString(), bytes, verified }, [
    `The backup of ${startedAt.toISOString()} is recorded as ${id}.`,
  ])
}

const TOOL_CHARACTERS = 100

async function forget({
  from,
  keepDaily: daily = 0,
  keepWeekly: weekly = 0,
  keepMonthly: monthly = 0,
  dryRun = false,
  ...options
}: ForgetOptions): Promise<void> {
  if (daily + weekly + monthly === 0) {
    throw new CommandError('Say which backups are kept: --keep-daily, --keep-weekly or --keep-monthly.')
  }
  const repository = repositoryOf(from, readConfig(process.env))
  const { kept, deleted, pictures } = await removeOldBackups(repository, { daily, weekly, monthly }, dryRun)
  print(options, { kept, forgotten: deleted, pictures, dry_run: dryRun }, [
    ...deleted.map((id) => `${dryRun ? 'would be removed' : 'removed'}: ${id}`),
    `${deleted.length} of ${deleted.length + kept.length} backups and ${pictures} pictures ${dryRun ? 'would be' : 'are'} removed.`,
  ])
}

function removeOldBackups(repository: Repository, retention: Retention, dryRun: boolean): Promise<DeletedBackups> {
  return runInterruptible('The next run removes the rest.', (signal) =>
    withPod((services) =>
      withBackupLock(services, signal, (locked) => deleteBackups(repository, retention, { dryRun, signal: locked })),
    ),
  )
}

async function restore(target: string, id: string, options: RestoreOptions): Promise<void> {
  const { backupS3 } = readConfig(process.env)
  const repository = openRepository(target, backupS3)
  const manifest = await requireManifest(repository, id)
  const settings = await readCommandConfig(process.env)
  const config = { ...settings, ...storageOf(options.picturesTo, settings) }
  const identities = await withPrompts(async (prompts) => {
    const found = await identitiesOf(prompts, repository, options)
    if (found === undefined && manifest.recipients.length > 0) throw new CommandError(describeMissingIdentity(manifest))
    await checkRestore(manifest, config)
    if (options.replace) await confirmHost(prompts, manifest.host, options.confirm)
    return found
  })
  const progress = showProgress()
  const restored = await runInterruptible(
    'The restore is not finished, and the pod does not start: run the same command again.',
    (signal) =>
      onDatabase(config, (url) =>
        restoreBackup(manifest, config, url, {
          repository,
          identities,
          replace: options.replace ?? false,
          shouldEndTokens: options.endTokens ?? false,
          signal,
          report: progress.report,
        }),
      ),
  ).finally(progress.end)
  const { rows, messages, pictures, lostPictures: lost_pictures, closedAgain: closed_accounts, renamed } = restored
  print(
    options,
    { id, rows, messages, pictures, lost_pictures, closed_accounts, renamed },
    describeRestored(manifest, restored),
  )
}

/** The store into which pictures are restored, if the option names another one than the settings. */
function storageOf(
  target: string | undefined,
  { s3 }: Config,
): Partial<Pick<Config, 'storage' | 'uploadsFallback' | 'uploadsDir'>> {
  if (target === undefined) return {}
  if (target !== 's3') return { storage: 'folder', uploadsFallback: undefined, uploadsDir: target }
  if (s3 === undefined) {
    throw new CommandError('--pictures-to s3 needs S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.')
  }
  return { storage: 's3', uploadsFallback: undefined }
}

function describeMissingIdentity({ passphrase_identity: identity }: Manifest): string {
  return identity === undefined
    ? 'The backup is encrypted: name the file of its identity with --identity.'
    : 'The backup is encrypted with a passphrase: add --passphrase.'
}

function describeRestored(manifest: Manifest, restored: Restored): string[] {
  const { rows, messages, pictures, lostPictures, closedAgain, renamed } = restored
  return [
    `Backup ${manifest.id} is restored: ${rows} rows, ${pictures} pictures, ${messages} accepted messages.`,
    `Everything since ${manifest.started_at} is missing. What was deleted or revoked since then is back.`,
    'All users must sign in again on the pages of the pod. Tokens of applications stay valid unless --end-tokens was given.',
    ...(closedAgain > 0
      ? [`${closedAgain} accounts are closed again, as a later backup lists them. Nothing is sent to other pods.`]
      : []),
    ...(manifest.pictures.referenced
      ? ['The pictures are not in the backup: they stay in the S3 store. "pod storage check" compares both.']
      : []),
    ...(lostPictures > 0 ? [`${lostPictures} pictures were missing or changed in the backup.`] : []),
    ...renamed.map((name) => `Renamed: ${name}. Delete it when the pod works.`),
  ]
}

async function onDatabase<Result>(config: Config, run: (url: string) => Promise<Result>): Promise<Result> {
  const database = await borrowDatabase(config)
  try {
    return await explainDatabaseErrors(database.url, () => run(database.url))
  } finally {
    await database.release()
  }
}

function repositoryOf(target: string | undefined, { backupTo, backupS3 }: Config): Repository {
  const place = target ?? backupTo
  if (place === undefined) throw new CommandError('There is no place for backups: set BACKUP_TO, or name a folder.')
  return openRepository(place, backupS3)
}

/** The recipients for whom a backup is encrypted. */
async function keyOf(
  repository: Repository,
  { backupRecipients }: Config,
  {
    plain = false,
    passphrase = false,
  }: { readonly plain: boolean | undefined; readonly passphrase: boolean | undefined },
): Promise<Pick<BackupOptions, 'recipients' | 'passphraseIdentity'>> {
  if (plain) return { recipients: [] }
  if (!passphrase) return { recipients: await readRecipients(backupRecipients) }
  const newPassphrase = await withPrompts(async (prompts) => {
    const isNew = prompts.isTerminal && !(await hasPassphraseIdentity(repository))
    const first = await askPassphrase(prompts)
    if (isNew && (await askPassphrase(prompts, 'again')) !== first)
      throw new CommandError('The two passphrases differ.')
    return first
  })
  const { recipient, identity } = await openPassphraseRecipient(repository, newPassphrase)
  return { recipients: [recipient], passphraseIdentity: identity }
}

async function identitiesOf(
  prompts: Prompts,
  repository: Repository,
  { identity: path, passphrase = false }: { readonly [Name in keyof IdentityOption]: IdentityOption[Name] | undefined },
): Promise<readonly string[] | undefined> {
  if (passphrase && path !== undefined) throw new CommandError('Give --identity or --passphrase, not both.')
  if (passphrase) return readPassphraseIdentities(repository, await askPassphrase(prompts))
  if (path === undefined) return undefined
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CommandError(`The identity file cannot be read (${messageOf(error)}).`)
  })
  return readIdentities(text)
}

async function confirmHost(prompts: Prompts, host: string, confirmed: string | undefined): Promise<void> {
  const question = `What is there is renamed. Type the host of the pod to confirm (${host}): `
  const typedHost = confirmed ?? (await prompts.ask(question))
  if (typedHost.trim() !== host) throw new CommandError(`Nothing was changed: the host of the pod is ${host}.`)
}

/** A passphrase is typed by hand, never a setting, and not shown. */
function askPassphrase(prompts: Prompts, again = ''): Promise<string> {
  return prompts.askHidden(`Passphrase of the backups${again && ', again'}: `)
}
