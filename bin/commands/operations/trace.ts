import type { Command } from 'commander'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { readTrace } from '../../../src/domain/operations/traces.js'
import { presentTraceStep } from '../../../src/web/presenters/operations.js'
import { type OutputOptions, print, printable, table } from '../../output.js'
import { withPod } from '../../with-pod.js'

export function traceCommand(program: Command): void {
  program
    .command('trace <id>')
    .description('Shows all effects of a request or a received message: stored, notified, sent, delivered.')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nThe id is the X-Request-Id of the response.\n\nExample:\n  pod trace 4bf92f3577b34da6a3ce929d0e0e4736',
    )
    .action(show)
}

async function show(id: string, options: OutputOptions): Promise<void> {
  const steps = await withPod((services) => readTrace(services, COMMAND_ACTOR, id))
  const rows = steps.map(({ at, event, type, guid, count, pod, detail }) => {
    return [at.toISOString(), event, type ?? '', guid ?? '', String(count ?? ''), pod ?? '', detail ?? '']
  })
  print(options, { id, steps: steps.map(presentTraceStep) }, table(rows).map(printable))
}
