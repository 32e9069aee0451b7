import { randomUUID } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { Command } from 'commander'
import { requireOriginalPod } from '../../../src/domain/archives/require-original.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { csvLine } from '../../../src/domain/moderation/csv.js'
import { beginImport, findImportOfFile } from '../../../src/federation/archives/imports/begin-import.js'
import { checkArchive } from '../../../src/federation/archives/imports/check-archive.js'
import { toImportingUser } from '../../../src/federation/archives/imports/import-run-context.js'
import { restoreKey } from '../../../src/federation/archives/imports/restore-key.js'
import { runImport } from '../../../src/federation/archives/imports/run-import.js'
import type { ImportingUser } from '../../../src/federation/archives/owner.js'
import { openPlainFile } from '../../../src/federation/archives/reading/archive-file.js'
import { deleteSpool, spoolArchive } from '../../../src/federation/archives/reading/spool-archive.js'
import { presentReport } from '../../../src/federation/archives/uploads/present-report.js'
import {
  listAnnouncedMoves,
  listWaitingPods,
  type WaitingPod,
} from '../../../src/persistence/archives/account-moves.js'
import { type ArchiveImport, findArchiveImport, listItemOutcomes } from '../../../src/persistence/archives/imports.js'
import { User } from '../../../src/persistence/models/user.js'
import { parseAddress } from '../../../src/protocol/address.js'
import { ArchiveError } from '../../../src/protocol/archives/archive-fault.js'
import { DAY_MS } from '../../../src/protocol/durations.js'
import type { Services } from '../../../src/services/services.js'
import { presentArchiveImport } from '../../../src/web/presenters/imports.js'
import { makeImportedPicture } from '../../../workers/handlers/make-imported-picture.js'
import { CommandError } from '../../command-error.js'
import { runInterruptible } from '../../interruptible.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { type ShownProgress, showProgress } from '../../progress.js'
import { withPod } from '../../with-pod.js'
import { describeImport, describeReport } from './describe-import.js'

interface CheckOptions extends OutputOptions {
  readonly photos?: string
  readonly for?: string
}

interface ImportCommandOptions extends OutputOptions {
  readonly as: string
  readonly photos?: string
  readonly move?: string
  readonly restoreKey?: boolean
  /** Commander turns --no-… into these. */
  readonly settings: boolean
  readonly profile: boolean
  readonly wait: boolean
}

export function archiveImportCommands(archive: Command): void {
  archive
    .command('check <file>')
    .description('Checks an archive and reports the outcome of an import. Changes nothing, but looks up people.')
    .option('--photos <zip>', 'the zip of its photos')
    .option('--for <username>', 'the account that would import it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod archive check alice.json.gz --photos alice-photos.zip --for alice')
    .action(checkFile)

  archive
    .command('import <file>')
    .description('Imports an archive of diaspora* or of this software into an account.')
    .requiredOption('--as <username>', 'the account that imports it')
    .option('--photos <zip>', 'the zip of its photos')
    .option('--move <network id>', 'the old network ID: its account moves to this one, with posts, comments and likes')
    .option(
      '--restore-key',
      'only give an account that was made anew the key of its own archive, after the database was lost',
    )
    .option('--no-settings', 'do not import language and following back')
    .option('--no-profile', 'do not import the profile')
    .option('--no-wait', 'only start the import; a worker of the running pod continues it')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nWithout --move only contacts, aspects, tags, blocks, settings and profile are imported. A move cannot be undone.' +
        '\n\nExample:\n  pod archive import alice.json.gz --as alice --photos alice-photos.zip --move alice@old.example',
    )
    .action(importFile)

  archive
    .command('items <import>')
    .description('Lists the items of an import with their outcomes.')
    .option('--csv', 'print CSV')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', '\nExample:\n  pod archive items 2b1f0c0e --csv > items.csv')
    .action(listItems)

  archive
    .command('moves')
    .description('Lists accounts that have moved to this pod, with the number of notified pods.')
    .option('--waiting', 'only moves with pods that are not notified yet, and these pods')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod archive moves --waiting')
    .action(listMoves)
}

async function checkFile(file: string, options: CheckOptions): Promise<void> {
  await requireFiles(file, options.photos)
  const progress = showProgress()
  const report = await runInterruptible('Nothing was changed.', (signal) =>
    withPod(async (services) => {
      const user = options.for === undefined ? NO_ACCOUNT : await requireUser(services, options.for)
      const folder = join(services.config.uploadsDir, 'imports', `${CHECK_FOLDER}${randomUUID()}`)
      // The folder may be that of the original of a copy.
      if (!services.config.isolated) await deleteAbandonedChecks(dirname(folder))
      try {
        const spooled = await spoolArchive(await openPlainFile(file), {
          folder,
          maxBytes: services.config.importBytes,
          signal,
        })
        const reportProgress = (step: string, done: number, total: number) => progress.report({ step, done, total })
        const photosFile = options.photos === undefined ? undefined : await openPlainFile(options.photos)
        return await checkArchive(services, { spooled, user, photosFile, signal, reportProgress })
      } finally {
        await deleteSpool(folder)
      }
    }),
  )
    .catch(explainArchiveError)
    .finally(progress.end)
  print(options, presentReport(report), describeReport(file, report, options.for !== undefined).map(printable))
}

const CHECK_FOLDER = 'check-'

/** A killed check leaves the lists of its archive. */
async function deleteAbandonedChecks(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name)
    const folderStats = name.startsWith(CHECK_FOLDER) ? await stat(path).catch(() => undefined) : undefined
    if (folderStats !== undefined && Date.now() - folderStats.mtimeMs > DAY_MS) await deleteSpool(path)
  }
}

/** A check that is made for no account. */
const NO_ACCOUNT: ImportingUser = { userId: 0, personId: 0, username: '', address: '' }

async function importFile(file: string, options: ImportCommandOptions): Promise<void> {
  await requireFiles(file, options.photos)
  if (options.restoreKey) return restoreKeyOf(file, options)
  const moveFrom = options.move === undefined ? undefined : parseAddress(options.move)
  if (options.move !== undefined && moveFrom === undefined) {
    throw new CommandError(`${options.move} is not a network ID: --move takes the old one, such as alice@old.example.`)
  }
  const progress = showProgress()
  const later =
    'The import continues where it stopped: in a worker of the running pod, or when you run the same command again.'
  const done = await runInterruptible(later, (signal) =>
    withPod(async (services) => {
      requireOriginalPod(services)
      const user = await requireUser(services, options.as)
      if (services.config.imports === 'off') throw new CommandError('Imports are off: set IMPORTS to on or operator.')
      const archiveImport =
        (await findImportOfFile(services, user, file)) ??
        (await beginImport(services, COMMAND_ACTOR, {
          file,
          photosFile: options.photos,
          user,
          options: { contacts: true, content: true, settings: options.settings, profile: options.profile },
          moveFrom,
          signal,
        }))
      return options.wait ? followImport(services, archiveImport, signal, progress) : archiveImport
    }),
  )
    .catch(explainArchiveError)
    .finally(progress.end)
  print(options, presentArchiveImport(done), describeImport(done).map(printable))
  if (done.state === 'failed') throw new CommandError(`The import failed: ${done.error ?? 'unknown'}.`)
}

async function restoreKeyOf(file: string, options: ImportCommandOptions): Promise<void> {
  const address = await runInterruptible('Nothing was changed.', (signal) =>
    withPod(async (services) => {
      const user = await requireUser(services, options.as)
      await restoreKey(services, COMMAND_ACTOR, { file, user, signal })
      return user.address
    }),
  ).catch(explainArchiveError)
  print(options, { address, key_restored: true }, [
    `${address} has the key of the archive. Import the archive without --restore-key now.`,
  ])
}

const POLL_INTERVAL_MS = 500

/** Runs the import, or shows how far the worker is that runs it. */
async function followImport(
  services: Services,
  { id }: ArchiveImport,
  signal: AbortSignal,
  progress: ShownProgress,
): Promise<ArchiveImport> {
  for (;;) {
    const reportProgress = ({ section, done, total }: { section: string; done: number; total: number | undefined }) =>
      progress.report({ step: section, done, total })
    await runImport(services, id, { signal, reportProgress, makePicture: makeImportedPicture })
    const accountImport = await findArchiveImport(services.db, { id })
    if (accountImport === undefined) throw new CommandError('The import was deleted.')
    if (accountImport.state !== 'running') return accountImport
    progress.report({ step: accountImport.phase, done: accountImport.lines, total: undefined })
    await pause(POLL_INTERVAL_MS, undefined, { signal })
  }
}

async function listItems(uid: string, options: OutputOptions & { readonly csv?: boolean }): Promise<void> {
  await withPod(async (services) => {
    const accountImport = await findArchiveImport(services.db, { uid })
    if (accountImport === undefined) throw new CommandError(`There is no import ${uid}.`)
    if (options.csv) process.stdout.write('section,position,ref,outcome,reason\r\n')
    for await (const page of listItemOutcomes(services.db, accountImport.id, PAGE)) {
      const lines = page.map(({ section, position, ref, outcome, reason }) => {
        if (options.csv) return csvLine([section, position, ref, outcome, reason])
        if (options.json) return `${JSON.stringify({ section, position, ref, outcome, reason })}\n`
        return `${printable([section, ref, outcome, reason ?? ''].join('  ').trimEnd())}\n`
      })
      process.stdout.write(lines.join(''))
    }
  })
}

const PAGE = 1_000

async function listMoves(options: OutputOptions & { readonly waiting?: boolean }): Promise<void> {
  const waiting = options.waiting === true
  const { moves, pods } = await withPod(async ({ db }) => ({
    moves: await listAnnouncedMoves(db, { waiting }),
    pods: waiting ? await listWaitingPods(db) : [],
  }))
  const rows = moves.map(({ oldAddress, newAddress, movedAt, delivered, waiting, refused }) => [
    oldAddress,
    newAddress,
    movedAt.toISOString(),
    `delivered ${delivered}`,
    `waiting ${waiting}`,
    `given up ${refused}`,
  ])
  const podRows = pods.map(({ oldAddress, pod, lastStatus, dueAt, givenUp }) => [
    `  ${oldAddress}`,
    pod,
    givenUp ? 'given up' : `next attempt ${dueAt.toISOString()}`,
    lastStatus === null ? 'no answer yet' : `last answer ${lastStatus}`,
  ])
  const json = moves.map((move) => ({
    old_address: move.oldAddress,
    new_address: move.newAddress,
    moved_at: move.movedAt,
    announce_until: move.announceUntil,
    delivered: move.delivered,
    waiting: move.waiting,
    refused: move.refused,
    ...(waiting && { pods: pods.filter(({ oldAddress }) => oldAddress === move.oldAddress).map(waitingPodJson) }),
  }))
  const none = waiting ? 'Every pod has received every move.' : 'No account has moved to this pod.'
  print(options, json, rows.length === 0 ? [none] : [...table(rows), ...table(podRows)])
}

function waitingPodJson({ pod, dueAt, attempts, lastStatus, givenUp }: WaitingPod) {
  return { pod, due_at: dueAt, attempts, last_status: lastStatus, given_up: givenUp }
}

async function requireUser(services: Services, username: string): Promise<ImportingUser> {
  const user = await User.byUsername(services.db, username)
  if (user === undefined || user.closedAt !== null)
    throw new CommandError(`There is no local account named ${username}.`)
  return toImportingUser(user)
}

async function requireFiles(...files: readonly (string | undefined)[]): Promise<void> {
  for (const file of files) {
    if (file === undefined) continue
    const fileStats = await stat(file).catch(() => undefined)
    if (fileStats?.isFile() !== true) throw new CommandError(`There is no file ${file}.`)
  }
}

function explainArchiveError(error: unknown): never {
  if (error instanceof ArchiveError) throw new CommandError(`${error.message} (${error.fault})`)
  throw error
}
