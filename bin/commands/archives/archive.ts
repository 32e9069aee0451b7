import type { Command } from 'commander'
import { findUser } from '../../../src/domain/accounts/accounts.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { exportToNewFile, recordExport } from '../../../src/federation/archives/export-archive.js'
import type { ExportKind } from '../../../src/persistence/archives/exports.js'
import { CommandError } from '../../command-error.js'
import { runInterruptible } from '../../interruptible.js'
import { type OutputOptions, print } from '../../output.js'
import { describeBytes, showProgress } from '../../progress.js'
import { withPod } from '../../with-pod.js'
import { archiveImportCommands } from './archive-imports.js'

interface ExportOptions extends OutputOptions {
  readonly out: string
  readonly photos?: string
  /** Commander turns --without-key into this. */
  readonly withoutKey?: boolean
}

export function archiveCommands(program: Command): void {
  const archive = program.command('archive').description('Archives of accounts, in the format of diaspora*.')

  archive
    .command('export <username>')
    .description('Exports an account to a file, with its private key.')
    .requiredOption('--out <file>', 'the file, which must not exist; "….json.gz"')
    .option('--photos <file>', 'also write the photos to this zip file')
    .option('--without-key', 'an archive to read and keep: without the private key, the account cannot move with it')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod archive export alice --out alice.json.gz --photos alice-photos.zip')
    .action(exportAccount)

  archiveImportCommands(archive)
}

async function exportAccount(username: string, options: ExportOptions): Promise<void> {
  const kinds: readonly (readonly [ExportKind, string])[] = [
    [options.withoutKey ? 'copy' : 'archive', options.out],
    ...(options.photos === undefined ? [] : [['photos', options.photos] as const]),
  ]
  const progress = showProgress()
  const files = await runInterruptible('The unfinished file is removed.', (signal) =>
    withPod(async (services) => {
      const account = await findUser(services, username)
      if (account === undefined) throw new CommandError(`There is no local account named ${username}.`)
      const exportedFiles = []
      for (const [kind, file] of kinds) {
        await recordExport(services, COMMAND_ACTOR, { username: account.username, kind })
        const run = { username: account.username, kind, file, signal }
        const reportProgress = ({ section, done }: { readonly section: string; readonly done: number }) =>
          progress.report({ step: section, done, total: undefined })
        exportedFiles.push({ kind, ...(await exportToNewFile(services, { ...run, reportProgress })) })
      }
      return exportedFiles
    }),
  )
  progress.end()
  const summary = files.map(({ kind, file, bytes, sha256, leftOut }) => ({
    kind,
    file,
    bytes,
    sha256,
    left_out: leftOut,
  }))
  const lines = files.map(
    ({ kind, file, bytes, sha256, leftOut }) =>
      `${file}: ${describeBytes(bytes)}, SHA-256 ${sha256}${leftOut > 0 ? `, ${leftOut} unsigned items left out` : ''}` +
      (kind === 'archive' ? '\nAnyone with this file can act as this person on other pods: keep it secret.' : ''),
  )
  print(options, summary, lines)
}
