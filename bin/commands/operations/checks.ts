import type { Command } from 'commander'
import { runChecks } from '../../../src/operations/checks/run-checks.js'
import { CommandError } from '../../command-error.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

export function checksCommand(program: Command): void {
  program
    .command('checks')
    .description(
      'Requests the pod at its own address, as other pods do, and compares clocks. A worker repeats this every six hours.',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod checks')
    .action(check)
}

async function check(options: OutputOptions): Promise<void> {
  const findings = await withPod((services) => runChecks(services))
  const failureCount = findings.filter(({ state }) => state === 'fail').length
  const rows = findings.map(({ state, check, message }) => [state, check, message])
  print(options, { healthy: failureCount === 0, findings }, table(rows).map(printable))
  if (failureCount > 0)
    throw new CommandError(failureCount === 1 ? 'One check failed.' : `${failureCount} checks failed.`)
}
