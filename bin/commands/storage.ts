import { type Command, Option } from 'commander'
import { checkPictures, movePictures } from '../../src/domain/photos/move-pictures.js'
import { openPictureStorageOfKind } from '../../src/persistence/photos/open-pictures.js'
import { CommandError } from '../command-error.js'
import { runInterruptible } from '../interruptible.js'
import { type OutputOptions, print } from '../output.js'
import { describeBytes, showProgress } from '../progress.js'
import { requirePictureStores } from '../require-picture-stores.js'
import { withPod } from '../with-pod.js'

interface MoveCommandOptions extends OutputOptions {
  readonly to: 'folder' | 's3'
  readonly dryRun?: boolean
  readonly deleteSource?: boolean
}

/** How many names of missing, orphaned or empty pictures are printed. */
const MAX_PRINTED_NAMES = 20

export function storageCommands(program: Command): void {
  const storage = program.command('storage').description('The store of pictures: a folder or an S3 store.')

  storage
    .command('check')
    .description('Compares the photos of the database with the pictures of the store that STORAGE names.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod storage check')
    .action(check)

  storage
    .command('move')
    .description(
      'Copies all pictures to the store of STORAGE, while the pod runs with UPLOADS_FALLBACK. It can be repeated.',
    )
    .addOption(
      new Option('--to <store>', 'the new store, as STORAGE names it').choices(['folder', 's3']).makeOptionMandatory(),
    )
    .option('--dry-run', 'copy nothing; count only')
    .option('--delete-source', 'delete each picture in the old store after its copy')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  STORAGE=s3 UPLOADS_FALLBACK=folder pod storage move --to s3')
    .action(move)
}

async function check(options: OutputOptions): Promise<void> {
  const found = await runInterruptible('Nothing was changed.', (signal) =>
    withPod(async (services) => {
      await requirePictureStores(services)
      const { config, db } = services
      // While pictures move, only the new store is checked: the old one will be removed.
      const checked = await checkPictures(db, openPictureStorageOfKind(config, config.storage), signal)
      return { ...checked, storage: config.storage, isMoving: config.uploadsFallback !== undefined }
    }),
  )
  const { photos, missing, orphaned, empty, sizes } = found
  print(options, { photos, missing, orphaned, empty, sizes }, [
    ...missing.slice(0, MAX_PRINTED_NAMES).map((name) => `missing: ${name}`),
    ...orphaned.slice(0, MAX_PRINTED_NAMES).map((name) => `without a photo: ${name}`),
    ...empty.slice(0, MAX_PRINTED_NAMES).map((name) => `empty: ${name}`),
    ...Object.entries(sizes).map(
      ([prefix, { files, bytes }]) => `${prefix || 'original'}: ${files} files, ${describeBytes(bytes)}`,
    ),
    `${photos} photos, ${missing.length} without a picture; ${orphaned.length} pictures without a photo, ${empty.length} empty ones.`,
  ])
  if (missing.length + empty.length === 0) return
  throw new CommandError(
    found.isMoving
      ? `Pictures are missing or empty in the new store: run "pod storage move --to ${found.storage}", and keep UPLOADS_FALLBACK until this check finds none.`
      : 'Pictures are missing or empty.',
  )
}

async function move({
  to,
  dryRun = false,
  deleteSource: shouldDeleteSource = false,
  ...options
}: MoveCommandOptions): Promise<void> {
  const progress = showProgress()
  const moveReport = await runInterruptible('The same command copies the rest.', (signal) =>
    withPod(async (services) => {
      const { config, db } = services
      const from = to === 's3' ? 'folder' : 's3'
      if (config.storage !== to || config.uploadsFallback !== from) {
        throw new CommandError(
          `First set STORAGE=${to} and UPLOADS_FALLBACK=${from}, and restart the pod: it then writes to the new store and reads from both.`,
        )
      }
      await requirePictureStores(services)
      await openPictureStorageOfKind(config, to).check()
      return movePictures(db, {
        from: openPictureStorageOfKind(config, from),
        to: openPictureStorageOfKind(config, to),
        dryRun,
        shouldDeleteSource,
        signal,
        report: (done) => progress.report({ step: 'pictures', done, total: undefined }),
      })
    }),
  ).finally(progress.end)
  print(options, { ...moveReport, dry_run: dryRun }, [
    `${moveReport.copied} pictures ${dryRun ? 'would be' : 'are'} copied, ${moveReport.present} were there already, ${moveReport.gone} were deleted in the meantime.`,
    ...(dryRun ? [] : ['Run "pod storage check", then remove UPLOADS_FALLBACK and restart the pod.']),
  ])
}
