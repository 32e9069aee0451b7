import type { Command } from 'commander'
import { listShownSettings, WHEN_NOT_SET } from '../../src/config/shown-settings.js'
import { type OutputOptions, print, table } from '../output.js'
import { readCommandConfig } from '../read-command-config.js'

export function configCommand(program: Command): void {
  program
    .command('config')
    .description('Shows the effective settings without secrets.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod config --json')
    .action(async (options: OutputOptions) => {
      const settings = listShownSettings(await readCommandConfig(process.env))
      const rows = Object.entries(settings).map(([name, value]) => [name, String(value ?? WHEN_NOT_SET[name] ?? '')])
      print(options, settings, table(rows))
    })
}
