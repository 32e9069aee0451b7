import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import type { Knex } from 'knex'
import { type Config, readConfig } from '../../src/config/config.js'
import { verifyPassword } from '../../src/domain/accounts/passwords/verify-password.js'
import { withSessionLock } from '../../src/persistence/database/session-lock.js'
import { User, UserSecrets } from '../../src/persistence/models/user.js'
import { createSecrets, readSecretKey } from '../../src/services/secrets.js'
import { closeUnfinishedAccounts } from '../../src/take-over/close-unfinished-accounts.js'
import { readOldSettings, writeEnvironmentFile } from '../../src/take-over/old-settings.js'
import type { PreflightReport } from '../../src/take-over/preflight/preflight.js'
import { readStatus } from '../../src/take-over/status.js'
import {
  abortTakeOver,
  type BuildReport,
  type CopyReport,
  copyOldPod,
  examineOldPod,
  finishTakeOver,
  rehearse,
  switchOver,
  type TakeOverOptions,
  type TakeOverTarget,
  verifyBuilt,
} from '../../src/take-over/take-over.js'
import { TakeOverError } from '../../src/take-over/take-over-error.js'
import { UPLOADS_MODES, type UploadsMode } from '../../src/take-over/uploads/take-files.js'
import type { VerifyReport } from '../../src/take-over/verify/verify-target.js'
import { CommandError } from '../command-error.js'
import { runInterruptible } from '../interruptible.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { describeBytes, showProgress } from '../progress.js'
import { withConfiguredPod, withDatabase } from '../with-pod.js'

const STEPS = [
  'preflight',
  'copy',
  'rehearse',
  'switch',
  'verify',
  'finish',
  'abort',
  'status',
  'check-password',
] as const

type Step = (typeof STEPS)[number]

interface GivenOptions extends OutputOptions {
  readonly from?: string
  readonly uploads?: string
  readonly uploadsMode: string
  readonly config?: string
  readonly oidcKey?: string
  readonly pepper?: string
  readonly pepperFile?: string
  readonly rate?: string
  readonly signatures: string
  readonly lockBrokenKeys?: boolean
  readonly sidekiq?: string
  readonly loseJobs?: boolean
  readonly yes?: boolean
}

export function takeOverCommand(program: Command): void {
  const command = program
    .command('take-over')
    .description('Replaces a diaspora* pod at the same host name: copies its accounts, content, pictures and tokens.')
    .argument('[step]', `${STEPS.join(', ')}; without a step: preflight, then copy`)
    .argument('[user]', 'for check-password: a username')
    .option(
      '--from <url>',
      'the old database, as postgres://… or mysql://…; TAKE_OVER_FROM keeps its password out of the list of processes',
    )
    .option(
      '--uploads <place>',
      'the folder public/uploads of the old pod, or its s3://bucket/path, or https://address',
    )
    .option('--uploads-mode <mode>', UPLOADS_MODES.join(', '), 'link')
    .option(
      '--config <file>',
      'config/diaspora.toml or diaspora.yml of the old pod: prints its settings as those of this pod',
    )
    .option('--oidc-key <file>', 'config/oidc_key.pem of the old pod')
    .option('--pepper-file <file>', 'a file with config.pepper of the old pod, if it was changed')
    .option('--pepper <text>', 'the same as text, which other users of this machine can read')
    .option('--rate <rows>', 'maximum rows per second')
    .option('--signatures <which>', 'which signatures are verified: all, or sample', 'sample')
    .option('--lock-broken-keys', 'lock open accounts without a valid key pair')
    .option(
      '--sidekiq <url>',
      'the Redis of the old pod, as redis://…: its jobs are counted, and continued by the switch',
    )
    .option(
      '--lose-jobs',
      'switch although Sidekiq has jobs that only the old pod can run, or without --sidekiq and its warning; they are discarded',
    )
    .option('--yes', 'confirm abort')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  TAKE_OVER_FROM=postgres://diaspora:secret@localhost/diaspora_production pod take-over preflight --uploads /home/diaspora/public/uploads',
    )
  command.action(async (word: string | undefined, user: string | undefined, given: GivenOptions) => {
    const steps = STEPS.filter((step) => step === word)
    if (word !== undefined && steps.length === 0) {
      command.error(`error: '${word}' is not a step of a take-over: ${STEPS.join(', ')}.`, { exitCode: 2 })
    }
    const [step] = steps
    const missing = missingOption(step, user, given)
    if (missing !== undefined) command.error(`error: ${missing}`, { exitCode: 2 })
    await runStep(step, user, given)
  })
}

/** The missing requirement of a step; undefined: nothing is missing. */
function missingOption(step: Step | undefined, user: string | undefined, given: GivenOptions): string | undefined {
  const needsSource =
    step === undefined ? given.config === undefined : ['preflight', 'copy', 'rehearse', 'switch'].includes(step)
  if (needsSource && sourceUrl(given) === undefined) return 'name the old database with --from or TAKE_OVER_FROM.'
  if (step === 'check-password' && user === undefined) return 'name the user.'
  if (!(UPLOADS_MODES as readonly string[]).includes(given.uploadsMode)) {
    return `--uploads-mode is one of ${UPLOADS_MODES.join(', ')}.`
  }
  if (!['all', 'sample'].includes(given.signatures)) return '--signatures is all or sample.'
  if (given.rate !== undefined && !/^[1-9][0-9]{0,8}$/.test(given.rate)) return '--rate is a number of rows a second.'
  return undefined
}

function sourceUrl({ from }: GivenOptions): string | undefined {
  return from ?? (process.env['TAKE_OVER_FROM'] || undefined)
}

async function runStep(step: Step | undefined, user: string | undefined, given: GivenOptions): Promise<void> {
  if (given.config !== undefined) await showOldSettings(given, given.config)
  if (step === undefined && sourceUrl(given) === undefined) return
  const config = readConfig(process.env)
  if (config.databaseUrl !== undefined && config.databaseUrl === sourceUrl(given)) {
    throw new CommandError('--from is the database of this pod: it must be that of the old pod.')
  }
  switch (step) {
    case undefined:
      await showPreflight(config, given)
      return showCopy(config, given)
    case 'preflight':
      return showPreflight(config, given)
    case 'copy':
      return showCopy(config, given)
    case 'rehearse':
      return showBuild(given, await withTarget(config, given, rehearse))
    case 'switch':
      return showSwitch(config, given)
    case 'verify':
      return showVerification(given, await withTarget(config, given, verifyBuilt))
    case 'finish':
      await withLockedDatabase(config, (db) => finishTakeOver({ db }))
      return print(given, { state: 'finished' }, ['The staging tables are dropped.'])
    case 'abort':
      if (given.yes !== true) {
        throw new CommandError('This empties the database of this pod, and cannot be undone: add --yes to confirm.')
      }
      await withLockedDatabase(config, (db) => abortTakeOver({ db }))
      return print(given, { state: 'none' }, ['The take-over is given up; no picture was removed.'])
    case 'status':
      return showStatus(config, given)
    case 'check-password':
      return checkPassword(config, given, user ?? '')
  }
}

/** The settings are printed and not used: the operator decides. With JSON, only if no report of a step follows. */
async function showOldSettings(given: GivenOptions, file: string): Promise<void> {
  const settings = readOldSettings({ name: file, text: await readFile(file, 'utf8') }, process.env)
  print(given, withSnakeCaseNames(settings), writeEnvironmentFile(settings))
}

function printReport(given: GivenOptions, report: object, lines: readonly string[]): void {
  print(given, withSnakeCaseNames(report), lines)
}

/** Renames the fields of a report as those of other commands: `buildSeconds` becomes `build_seconds`. Names of classes stay. */
function withSnakeCaseNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withSnakeCaseNames)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, content]) => [
      /^[a-z]+([A-Z][a-z]+)+$/.test(name) ? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) : name,
      withSnakeCaseNames(content),
    ]),
  )
}

async function showPreflight(config: Config, given: GivenOptions): Promise<void> {
  const report = await withOptions(given, (options) =>
    withDatabase(config, (db, url) => examineOldPod({ db, url, config }, options)),
  )
  printReport(given, report, describePreflight(report))
  const [first] = report.blocks
  if (first === undefined) return
  throw new CommandError(`The take-over is blocked by ${report.blocks.map(({ code }) => code).join(', ')}.`)
}

function describePreflight({ files, ...report }: PreflightReport): readonly string[] {
  return [
    `diaspora* ${report.release}, newest migration ${report.newestMigration}, encoding ${report.encoding}`,
    ...table(
      report.tables
        .filter(({ rows }) => rows > 0)
        .map(({ name, rows, isEstimate, bytes }) => [
          name,
          `${isEstimate ? 'about ' : ''}${rows} rows`,
          describeBytes(bytes),
        ]),
    ),
    `accounts: ${Object.entries(report.accounts)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(', ')}`,
    ...report.hosts.map(({ host, accounts }) => `handles at ${host}: ${accounts}`),
    `key pairs: ${report.keyPairs.checked} checked, ${report.keyPairs.broken} broken`,
    ...(files
      ? [`pictures: ${files.files} files, ${files.photos} photos of users, ${files.missing} without file`]
      : []),
    `disk space for the database: ${describeBytes(report.disk.needed)} needed${report.disk.free === undefined ? '' : `, ${describeBytes(report.disk.free)} free`}`,
    ...(report.sidekiq
      ? [
          `Sidekiq: ${report.sidekiq.processes} processes, ${report.sidekiq.dead} dead jobs, waiting: ${
            Object.entries(report.sidekiq.waiting)
              .map(([name, count]) => `${count} ${name}`)
              .join(', ') || 'none'
          }`,
        ]
      : []),
    ...report.findings.map(
      ({ code, table: name, count, examples }) => `${code} ${name}: ${count} (${printable(examples.join(', '))})`,
    ),
    ...report.notChecked.map(({ code, table: name }) => `${code} ${name}: not checked, which takes over a minute`),
    ...report.clients.map(
      ({ reason, count, examples }) =>
        `applications that this pod limits (${reason}): ${count} (${printable(examples.join(', '))})`,
    ),
    ...(report.seconds
      ? [`expected time: copy ${report.seconds.copy} s, switch ${report.seconds.switch} s (refresh, build, comparison)`]
      : []),
    ...report.blocks.map(({ code, message }) => `${code}: ${printable(message)}`),
  ]
}

async function showCopy(config: Config, given: GivenOptions): Promise<void> {
  const report = await withTarget(config, given, copyOldPod)
  printReport(given, report, describeCopy(report))
}

function describeCopy({ copied, compared, repaired, seconds, files }: CopyReport): readonly string[] {
  const rate = seconds > 0 ? Math.round(compared / seconds) : compared
  return [
    `${compared} rows compared, ${copied} of them copied, in ${seconds.toFixed(1)} s (${rate} a second)`,
    ...(repaired > 0 ? [`D10: ${repaired} rows with bytes that are no text, which became U+FFFD`] : []),
    ...(files ? [`${files.files} pictures, ${files.added} of them new`] : []),
  ]
}

function showBuild(given: GivenOptions, report: BuildReport): void {
  printReport(given, report, [
    ...describeCopy(report),
    `built in ${report.buildSeconds.toFixed(1)} s`,
    ...describeVerification(report.verification),
    ...describeJobs(report),
    `refresh, build and comparison have taken ${report.switchSeconds.toFixed(1)} s: the time of a switch`,
    ...report.warnings.map((warning) => `warning: ${warning}`),
  ])
}

function describeJobs({ jobs }: BuildReport): readonly string[] {
  if (jobs === undefined) return []
  return [
    ...Object.entries(jobs.carried).map(([name, count]) => `Sidekiq: ${count} ${name} carried over`),
    ...jobs.dropped.map(
      ({ name, fault, count, examples }) =>
        `Sidekiq: ${count} ${name} dropped, ${fault} (${printable(examples.join(', '))})`,
    ),
    `Sidekiq: ${jobs.dead} dead jobs dropped`,
  ]
}

async function showSwitch(config: Config, given: GivenOptions): Promise<void> {
  const report = await withTarget(config, given, (target, options) =>
    switchOver(target, options, () =>
      withConfiguredPod({ ...target.config, databaseUrl: target.url }, async (services) => ({
        closedAccounts: await closeUnfinishedAccounts(services),
      })),
    ),
  )
  showBuild(given, report)
  if (given.json !== true) print(given, undefined, ['The take-over is complete: start this pod.'])
}

function showVerification(given: GivenOptions, report: VerifyReport): void {
  printReport(given, report, describeVerification(report))
  if (report.differences.length > 0) throw new CommandError('The target differs from the source.')
}

function describeVerification({
  balances,
  signatures,
  keys,
  requests,
  files,
  originals,
  differences,
}: VerifyReport): readonly string[] {
  return [
    ...table(
      balances
        .filter(({ rows }) => rows > 0)
        .map(({ table: name, rows, copied, others }) => [
          name,
          `${rows} rows`,
          `${copied} copied`,
          Object.entries(others)
            .map(([code, count]) => `${count} ${code}`)
            .join(', '),
        ]),
    ),
    ...signatures.map(
      ({ table: name, order, verified, byOldHandle, notVerified }) =>
        `signatures of ${name} (${printable(order)}): ${verified} verified, ${byOldHandle} by an old handle, ${notVerified} not`,
    ),
    `${keys} private keys open and fit`,
    `requests: ${requests.posts} posts, ${requests.comments} comments, ${requests.people} people, ${requests.pictures} photos`,
    ...(files === undefined ? [] : [`${files} pictures compared`]),
    ...(originals === undefined
      ? []
      : [`originals of photos: ${originals.photos - originals.missing} found, ${originals.missing} missing`]),
    ...differences.map(
      ({ check, detail, examples }) =>
        `DIFFERENT ${check}: ${detail}${examples.length > 0 ? ` (${examples.join(', ')})` : ''}`,
    ),
  ]
}

async function showStatus(config: Config, given: GivenOptions): Promise<void> {
  const status = await withDatabase(config, readStatus)
  const done = status.tables.reduce((sum, { done: rows }) => sum + rows, 0)
  const totalRows = status.tables.reduce((sum, { rows }) => sum + rows, 0)
  print(given, status, [
    `state: ${status.state}`,
    ...(status.step === null ? [] : [`step: ${status.step}`]),
    ...(totalRows > 0 ? [`rows: ${done} of ${totalRows}`] : []),
    ...(status.seconds_left === null ? [] : [`time left: ${Math.ceil(status.seconds_left)} s`]),
    ...(status.added === null
      ? []
      : [
          `added since the switch, and missing in the old pod: ${Object.entries(status.added)
            .map(([name, count]) => `${count} ${name}`)
            .join(', ')}`,
        ]),
  ])
}

/** Proves before the switch that passwords and pepper fit. */
async function checkPassword(config: Config, given: GivenOptions, username: string): Promise<void> {
  const password = (await text(process.stdin)).replace(/\r?\n$/, '')
  const secrets = createSecrets(await readSecretKey(config))
  const isRight = await withDatabase(config, async (db) => {
    const user = await User.byUsername(db, username.toLowerCase())
    if (user === undefined)
      throw new CommandError(`There is no local account named ${username}: run "pod take-over rehearse" first.`)
    const hash = (await UserSecrets.query(db).findById(user.id))?.passwordHash
    return hash ? verifyPassword({ db, secrets }, hash, password) : false
  })
  print(given, { right: isRight }, [
    isRight ? 'The password is correct.' : 'The password is wrong, or the pepper differs.',
  ])
  if (!isRight) throw new CommandError('The password was not accepted.')
}

async function withTarget<Result>(
  config: Config,
  given: GivenOptions,
  run: (target: TakeOverTarget, options: TakeOverOptions) => Promise<Result>,
): Promise<Result> {
  const secrets = createSecrets(await readSecretKey(config))
  return withOptions(given, (options) =>
    withDatabase(config, (db, url) =>
      withSessionLock(db, 'take-over', { signal: options.signal, refuse: refuseSecondRun }, (signal) =>
        run({ db, url, config, secrets }, { ...options, signal }),
      ),
    ),
  )
}

async function withLockedDatabase(config: Config, run: (db: Knex) => Promise<void>): Promise<void> {
  await withDatabase(config, (db) => withSessionLock(db, 'take-over', { refuse: refuseSecondRun }, () => run(db)))
}

function refuseSecondRun(): TakeOverError {
  return new TakeOverError('Another command is taking over at this moment: wait until it has ended.')
}

async function withOptions<Result>(
  given: GivenOptions,
  run: (options: TakeOverOptions) => Promise<Result>,
): Promise<Result> {
  const progress = showProgress()
  const oidcKey = given.oidcKey === undefined ? undefined : await readFile(given.oidcKey, 'utf8')
  const pepper = await readPepper(given)
  try {
    return await runInterruptible('Nothing is lost: the same step continues.', (signal) =>
      run({
        from: sourceUrl(given) ?? '',
        uploads: given.uploads,
        uploadsMode: given.uploadsMode as UploadsMode, // checked by missingOption
        oidcKey,
        pepper,
        rate: given.rate === undefined ? undefined : Number(given.rate),
        shouldVerifyAllSignatures: given.signatures === 'all',
        shouldLockBrokenKeys: given.lockBrokenKeys === true,
        sidekiq: given.sidekiq,
        mayLoseJobs: given.loseJobs === true,
        signal,
        report: progress.report,
      }),
    )
  } finally {
    progress.end()
  }
}

async function readPepper({ pepper, pepperFile }: GivenOptions): Promise<string | undefined> {
  if (pepperFile !== undefined) return (await readFile(pepperFile, 'utf8')).trim()
  if (pepper !== undefined)
    process.stderr.write('--pepper can be read by other users of this machine: --pepper-file is safer.\n')
  return pepper ?? (process.env['TAKE_OVER_PEPPER'] || undefined)
}
