import type { Command } from 'commander'
import { CommandError } from '../command-error.js'
import { checkUpgrade } from '../doctor/check-upgrade.js'
import { type OutputOptions, print, table } from '../output.js'
import { readCommandConfig } from '../read-command-config.js'
import { requireDatabase, withDatabase } from '../with-pod.js'

export function upgradeCommands(program: Command): void {
  program
    .command('upgrade')
    .description('Upgrades of the program.')
    .command('check')
    .description(
      'Checks whether this version can start on the database of the pod: versions, migrations, disk, backup.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod upgrade check')
    .action(check)
}

async function check(options: OutputOptions): Promise<void> {
  const config = await readCommandConfig(process.env)
  await requireDatabase(config)
  const findings = await withDatabase(config, (db) => checkUpgrade(db, config, process.env))
  const failure = findings.filter(({ state }) => state === 'fail')
  print(
    options,
    { ready: failure.length === 0, findings },
    table(findings.map(({ state, check: name, message }) => [state, name, message])),
  )
  if (failure.length > 0) throw new CommandError('The pod is not ready for this version.')
}
